package carry

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// gone reports whether a session is not in its place any more. What cannot be read of one that was
// deleted while it is exported is no damage.
func (x *exporter) gone(id session.ID) bool {
	_, err := x.Root.Lstat(folder.Path(id))
	return errors.Is(err, fs.ErrNotExist) || writer.Moved(x.Root, folder.Path(id))
}

// leaveOut warns of a session that is gone. Where not all are exported it returns an error.
func (x *exporter) leaveOut(id session.ID) error {
	if !x.o.All {
		return fmt.Errorf("export session %s: it was deleted meanwhile: %w", id, folder.ErrNotFound)
	}
	x.warn("session %s was deleted meanwhile, and is left out", id)
	return nil
}

// dropGone leaves out the sessions that are gone, after an error of exporting them, and reports
// whether there are any.
func (x *exporter) dropGone() (some bool, err error) {
	x.parts = slices.DeleteFunc(x.parts, func(p *part) bool {
		if !x.gone(p.id) {
			return false
		}
		some, err = true, errors.Join(err, x.leaveOut(p.id))
		_ = p.close() // nothing was written to it
		return true
	})
	return some, err
}
