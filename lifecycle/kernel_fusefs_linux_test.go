package lifecycle_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
)

// A faultyFS is a mounted file system that passes everything on to a folder, unless
// a test makes it fail: what the kernel answers then is what it answers for a disk.
type faultyFS struct {
	dir     string // where it is mounted
	backing string // where the files are

	mu    sync.Mutex
	fail  func(call, name string) syscall.Errno // Guarded by mu.
	calls map[[2]string]int                     // Guarded by mu: by call and file name.
	hits  int                                   // Guarded by mu: calls that were failed.
}

func mountFaulty(t *testing.T) *faultyFS {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting FUSE without its helper takes root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	d := &faultyFS{dir: t.TempDir(), backing: t.TempDir(), calls: map[[2]string]int{}}
	loopback, err := fs.NewLoopbackRoot(d.backing)
	require.NoError(t, err)
	server, err := fs.Mount(d.dir, &faultyNode{loopback.(*fs.LoopbackNode), d}, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true}})
	if err != nil {
		t.Skipf("FUSE cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, server.Unmount()) })
	return d
}

// failing has the calls fail that fn has an errno for; nil heals.
func (d *faultyFS) failing(fn func(call, name string) syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = fn
}

// once fails the next call of a kind on a file whose name matches a pattern.
func (d *faultyFS) once(call, pattern string, errno syscall.Errno) {
	done := false
	d.failing(func(c, name string) syscall.Errno {
		match, _ := filepath.Match(pattern, name)
		if done || c != call || !match {
			return 0
		}
		done = true
		return errno
	})
}

func (d *faultyFS) ask(call, name string) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[[2]string{call, name}]++
	if d.fail == nil {
		return 0
	}
	errno := d.fail(call, name)
	if errno != 0 {
		d.hits++
	}
	return errno
}

func (d *faultyFS) failed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hits
}

// called returns how often a call was made on the files of a name so far.
func (d *faultyFS) called(call, name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[[2]string{call, name}]
}

// faultyNode is a file or folder.
type faultyNode struct {
	*fs.LoopbackNode
	disk *faultyFS
}

func (n *faultyNode) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &faultyNode{ops.(*fs.LoopbackNode), n.disk}
}

func (n *faultyNode) name() string { return filepath.Base(n.Path(n.Root())) }

func (n *faultyNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if errno := n.disk.ask("create", name); errno != 0 {
		return nil, nil, 0, errno
	}
	inode, f, fuseFlags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return inode, &faultyFile{f.(*fs.LoopbackFile), inode.Operations().(*faultyNode)}, fuseFlags, 0
}

func (n *faultyNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		if errno := n.disk.ask("open", n.name()); errno != 0 {
			return nil, 0, errno
		}
	}
	f, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &faultyFile{f.(*fs.LoopbackFile), n}, fuseFlags, 0
}

func (n *faultyNode) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if errno := n.disk.ask("mkdir", name); errno != 0 {
		return nil, errno
	}
	return n.LoopbackNode.Mkdir(ctx, name, mode, out)
}

func (n *faultyNode) Rename(ctx context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if errno := n.disk.ask("rename", newName); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Rename(ctx, name, to, newName, flags)
}

func (n *faultyNode) Unlink(ctx context.Context, name string) syscall.Errno {
	if errno := n.disk.ask("unlink", name); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Unlink(ctx, name)
}

func (n *faultyNode) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, fuseFlags, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &faultyDir{f.(openDir), n}, fuseFlags, 0
}

// openDir is what an open folder of a loopback file system does.
type openDir interface {
	fs.FileReaddirenter
	fs.FileReleasedirer
	fs.FileSeekdirer
	fs.FileFsyncdirer
}

// faultyDir is an open folder.
type faultyDir struct {
	openDir
	node *faultyNode
}

func (f *faultyDir) Fsyncdir(ctx context.Context, flags uint32) syscall.Errno {
	if errno := f.node.disk.ask("syncdir", f.node.name()); errno != 0 {
		return errno
	}
	return f.openDir.Fsyncdir(ctx, flags)
}

// faultyFile is an open file.
type faultyFile struct {
	*fs.LoopbackFile
	node *faultyNode
}

// PassthroughFd would have the kernel go by without asking.
func (f *faultyFile) PassthroughFd() (int, bool) { return 0, false }

func (f *faultyFile) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if errno := f.node.disk.ask("write", f.node.name()); errno != 0 {
		return 0, errno
	}
	return f.LoopbackFile.Write(ctx, data, off)
}

func (f *faultyFile) Writev(ctx context.Context, data [][]byte, off int64) (uint32, syscall.Errno) {
	if errno := f.node.disk.ask("write", f.node.name()); errno != 0 {
		return 0, errno
	}
	return f.LoopbackFile.Writev(ctx, data, off)
}

func (f *faultyFile) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	if errno := f.node.disk.ask("fsync", f.node.name()); errno != 0 {
		return errno
	}
	return f.LoopbackFile.Fsync(ctx, flags)
}

// Flush is the call that the kernel makes for a close.
func (f *faultyFile) Flush(ctx context.Context) syscall.Errno {
	if errno := f.node.disk.ask("flush", f.node.name()); errno != 0 {
		return errno
	}
	return f.LoopbackFile.Flush(ctx)
}
