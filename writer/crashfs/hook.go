package crashfs

// An Op is a call that is about to be carried out.
//
// Call is one of create, open, truncate (an open with O_TRUNC of a file that is
// there), write, sync, datasync, close, chmod, mkdir, rename, remove, removeall,
// link, symlink, syncdir; those that change nothing are read, stat, lstat,
// readdir, readlink, sub, lock, rlock, unlock, and open and close of a handle that
// only reads.
type Op struct {
	N     int    // from 1 over the calls that may change or sync something, 0 for the others
	Call  string // see above
	Name  string // relative to the root, of a file or [writer.FS.Sub] as it was opened; the new name of a rename, link or symlink
	Bytes int    // of a write or read
}

// A Fault is what happens to a call. The zero value lets it through.
//
// A call with an Err is not carried out, but: a write writes Partial bytes first, a
// close closes all the same, as the kernel does, and a sync loses what it was to
// write. A write with a Partial and no Err writes that much and returns no error.
type Fault struct {
	Err     error
	Partial int
}

// SetHook has fn called before each call, outside the disk's mutex, so that it
// may call [Disk.Snapshot]. nil removes it. Of calls made at the same time the order
// of N need not be the one in which they are carried out.
func (d *Disk) SetHook(fn func(Op) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hook = fn
}

func (d *Disk) before(call, name string, bytes int, counted bool) Fault {
	d.mu.Lock()
	op := Op{Call: call, Name: name, Bytes: bytes}
	if counted {
		d.calls++
		op.N = d.calls
	}
	hook := d.hook
	d.mu.Unlock()
	if hook == nil {
		return Fault{}
	}
	return hook(op)
}
