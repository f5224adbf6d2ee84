package fusedisk

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A served is a mounted file system that passes everything on to a folder, counts,
// and answers fsync late.
type served struct {
	fsyncs, bytes atomic.Int64
	hold          atomic.Int64 // ns by which each fsync is late
	until         atomic.Int64 // Unix ns before which no fsync is answered
}

// serve mounts backing at mount and does what the lines of in say, each answered
// by a line, until in ends.
func serve(mount, backing string, in io.Reader, out io.Writer) error {
	root, err := fs.NewLoopbackRoot(backing)
	if err != nil {
		return err
	}
	d := &served{}
	_, err = fs.Mount(mount, &diskNode{root.(*fs.LoopbackNode), d}, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true}})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "mounted")
	for lines := bufio.NewScanner(in); lines.Scan(); {
		verb, arg, _ := strings.Cut(lines.Text(), " ")
		wait, _ := time.ParseDuration(arg) // counts has none
		switch verb {
		case "hold":
			d.hold.Store(int64(wait))
		case "stall":
			d.until.Store(time.Now().Add(wait).UnixNano())
		}
		fmt.Fprintln(out, d.fsyncs.Load(), d.bytes.Load())
	}
	// Not everybody has closed all files when a Close returns; this process
	// ends now, and with it what they could still be used for.
	return syscall.Unmount(mount, syscall.MNT_DETACH)
}

func (d *served) fsync() {
	d.fsyncs.Add(1)
	time.Sleep(time.Duration(d.hold.Load()))
	if until := d.until.Load(); until > 0 {
		time.Sleep(time.Until(time.Unix(0, until)))
	}
}

// diskNode is a file or folder.
type diskNode struct {
	*fs.LoopbackNode
	disk *served
}

// WrapChild makes what is found in a folder a diskNode too.
func (n *diskNode) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &diskNode{ops.(*fs.LoopbackNode), n.disk}
}

// Create wraps the file that was made.
func (n *diskNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, f, fuseFlags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return inode, &diskFile{f.(*fs.LoopbackFile), n.disk}, fuseFlags, 0
}

// Open wraps the file that was opened.
func (n *diskNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &diskFile{f.(*fs.LoopbackFile), n.disk}, fuseFlags, 0
}

// OpendirHandle wraps the folder that was opened.
func (n *diskNode) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, fuseFlags, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &diskDir{f.(openDir), n.disk}, fuseFlags, 0
}

// openDir is what an open folder of a loopback file system does.
type openDir interface {
	fs.FileReaddirenter
	fs.FileReleasedirer
	fs.FileSeekdirer
	fs.FileFsyncdirer
}

// diskDir is an open folder.
type diskDir struct {
	openDir
	disk *served
}

// Fsyncdir is late.
func (f *diskDir) Fsyncdir(ctx context.Context, flags uint32) syscall.Errno {
	f.disk.fsync()
	return f.openDir.Fsyncdir(ctx, flags)
}

// diskFile is an open file.
type diskFile struct {
	*fs.LoopbackFile
	disk *served
}

// PassthroughFd would have the kernel go by without asking.
func (f *diskFile) PassthroughFd() (int, bool) { return 0, false }

// Write counts.
func (f *diskFile) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	f.disk.bytes.Add(int64(len(data)))
	return f.LoopbackFile.Write(ctx, data, off)
}

// Writev counts.
func (f *diskFile) Writev(ctx context.Context, data [][]byte, off int64) (uint32, syscall.Errno) {
	for _, d := range data {
		f.disk.bytes.Add(int64(len(d)))
	}
	return f.LoopbackFile.Writev(ctx, data, off)
}

// Fsync is late.
func (f *diskFile) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	f.disk.fsync()
	return f.LoopbackFile.Fsync(ctx, flags)
}
