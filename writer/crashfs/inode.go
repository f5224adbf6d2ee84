package crashfs

import (
	"io/fs"
	"maps"
	"slices"
	"syscall"
	"time"
)

type fileMode = fs.FileMode

const modeDir = fs.ModeDir

// An inode is a file, a folder or a symlink. Content is copied on write: bytes
// below frozen, durable bytes and pending changes are shared with other disks.
type inode struct {
	ino     uint64
	mode    fileMode
	mtime   int64
	nlink   int // names in the cache
	open    int // handles
	writers int // files that are open for writing, without locks
	target  string

	data        []byte
	frozen      int // bytes of data that are shared
	durable     []byte
	durableMode fileMode
	pend        []change

	entries, durableEntries map[string]uint64
	shared, durableShared   bool // that map is another disk's too
}

// A change of a file that is not durable.
type change struct {
	kind changeKind
	off  int64 // of a write; the length after a truncation
	data []byte
	mode fileMode
	lost bool // a sync of it failed: the cache shows it, no sync writes it
}

type changeKind byte

const (
	written changeKind = iota
	truncated
	modeSet
)

// copy is a copy that shares everything. Only the original appends in place: the
// copy's slices are clipped.
func (i *inode) copy() inode {
	i.frozen = len(i.data)
	i.shared, i.durableShared = true, true
	c := *i
	c.data, c.pend, c.open, c.writers = clip(i.data), clip(i.pend), 0, 0
	return c
}

// ownEntries is the map of cached entries, to be written to.
func (i *inode) ownEntries() map[string]uint64 {
	if i.shared {
		i.entries, i.shared = maps.Clone(i.entries), false
	}
	return i.entries
}

func (i *inode) ownDurableEntries() map[string]uint64 {
	if i.durableShared {
		i.durableEntries, i.durableShared = maps.Clone(i.durableEntries), false
	}
	return i.durableEntries
}

// write changes the cache. It returns ENOSPC after what fits.
func (d *Disk) write(i *inode, p []byte, off int64) (int, error) {
	var err error
	if grow := int(off) + len(p) - len(i.data); d.maxBytes > 0 && grow > 0 && len(p) > 0 {
		if over := grow - max(d.maxBytes-d.usedBytes, 0); over > 0 {
			p, err = p[:max(len(p)-over, 0)], syscall.ENOSPC
		}
	}
	if len(p) == 0 {
		return 0, err
	}
	before := len(i.data)
	if min(int(off), before) < i.frozen {
		i.data, i.frozen = slices.Clone(i.data), 0
	}
	p = slices.Clone(p)
	i.data = put(i.data, p, off)
	i.pend = append(i.pend, change{kind: written, off: off, data: p})
	d.usedBytes += len(i.data) - before
	d.touch(i)
	return len(p), err
}

// put writes into a slice that is the caller's own; a gap becomes NULs.
func put(b, p []byte, off int64) []byte {
	if end := int(off) + len(p); end > len(b) {
		b = extend(b, end)
	}
	copy(b[off:], p)
	return b
}

func extend(b []byte, size int) []byte {
	if size <= len(b) {
		return b
	}
	n := len(b)
	b = slices.Grow(b, size-n)[:size]
	clear(b[n:])
	return b
}

func (d *Disk) truncate(i *inode) {
	d.touch(i)
	if len(i.data) == 0 {
		return
	}
	d.usedBytes -= len(i.data)
	i.data, i.frozen = nil, 0
	i.pend = append(i.pend, change{kind: truncated})
}

func (d *Disk) chmod(i *inode, mode fileMode) {
	i.mode = i.mode.Type() | mode.Perm()
	i.pend = append(i.pend, change{kind: modeSet, mode: i.mode})
}

// sync makes the changes durable that were not lost; dataOnly leaves modes out.
func (i *inode) sync(dataOnly bool) {
	var left []change
	lost := false
	for k, c := range i.pend {
		switch {
		case c.lost:
			lost = true
			left = append(left, c.without(i.pend[k+1:])...)
		case c.kind != modeSet:
		case dataOnly:
			left = append(left, c)
		default:
			i.durableMode = c.mode
		}
	}
	if lost {
		i.durable = i.replay(fate{kind: keep})
	} else {
		i.frozen = len(i.data)
		i.durable = clip(i.data)
	}
	i.pend = left
}

// without is what is left of a lost write after later changes became durable:
// put over the durable content again it must not bring back old bytes.
func (c change) without(later []change) []change {
	parts := []change{c}
	cut := func(from, to int64) {
		var next []change
		for _, p := range parts {
			end := p.off + int64(len(p.data))
			if a := min(max(from-p.off, 0), int64(len(p.data))); a > 0 {
				next = append(next, change{kind: written, off: p.off, data: p.data[:a], lost: true})
			}
			if to < end {
				a := max(to-p.off, 0)
				next = append(next, change{kind: written, off: p.off + a, data: p.data[a:], lost: true})
			}
		}
		parts = next
	}
	for _, l := range later {
		switch {
		case l.kind == truncated:
			cut(l.off, 1<<62)
		case l.kind == written && !l.lost:
			cut(l.off, l.off+int64(len(l.data)))
		}
	}
	return parts
}

// failSync is what a failed sync of a file leaves.
func (d *Disk) failSync(i *inode) {
	if d.mode == XFS {
		d.usedBytes += len(i.durable) - len(i.data)
		i.data, i.frozen = clip(i.durable), len(i.durable)
		i.mode, i.pend = i.durableMode, nil
		return
	}
	i.pend = slices.Clone(i.pend)
	for k := range i.pend {
		i.pend[k].lost = i.pend[k].kind == written
	}
}

// info describes an inode as it is now. Sys is the inode, to be compared.
type info struct {
	name  string
	size  int64
	mode  fileMode
	mtime time.Time
	sys   *inode
}

func (d *Disk) info(i *inode, name string) fs.FileInfo {
	size := len(i.data) + len(i.target)
	return &info{name: name, size: int64(size), mode: i.mode, mtime: d.time(i.mtime), sys: i}
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.size }
func (i *info) Mode() fs.FileMode  { return i.mode }
func (i *info) ModTime() time.Time { return i.mtime }
func (i *info) IsDir() bool        { return i.mode.IsDir() }
func (i *info) Sys() any           { return i.sys }
