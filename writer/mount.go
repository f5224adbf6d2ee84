package writer

import (
	"os"

	"github.com/lopen-dev/lopen/writer/mount"
)

// RemoveAll crosses no mount, see [mount.RemoveIn].
func (d *root) RemoveAll(name string) error { return mount.RemoveIn(d.r, name) }

// Mount looks from a descriptor of the folder, which it opens at its first call.
func (d *root) Mount(name string) (uint64, error) {
	dir, err := d.self()
	if err != nil {
		return 0, err
	}
	return mount.Of(dir, name)
}

// Volume looks as Mount does.
func (d *root) Volume(name string) string {
	dir, err := d.self()
	if err != nil {
		return ""
	}
	return mount.VolumeAt(dir, name)
}

// self returns a descriptor of the folder that Close closes.
func (d *root) self() (*os.File, error) {
	if d.dir != nil {
		return d.dir, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.late == nil {
		f, err := d.r.Open(".")
		if err != nil {
			return nil, err
		}
		d.late = f
	}
	return d.late, nil
}
