package carry

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/writer"
)

// sparse is the size in bytes above which a readable file is searched for a NUL before it is
// exported.
const sparse = 1 << 20

// isText reports whether a readable file may be exported: it has at most as many bytes as are read
// of one, and a large one has no NUL, which a hole in a file consists of. The files are made from
// the log, so that nothing is lost without one.
func isText(dir writer.FS, name string, size int64) (bool, error) {
	if size <= sparse || size > folder.MaxFile {
		return size <= sparse, nil
	}
	f, _, err := writer.OpenRegular(dir, "export", name, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for r, buf := io.LimitReader(f, size), make([]byte, 64<<10); ; {
		n, err := r.Read(buf)
		if bytes.IndexByte(buf[:n], 0) >= 0 {
			return false, nil
		}
		if err != nil {
			return errors.Is(err, io.EOF), nil // whatever it is, the export meets it again
		}
	}
}

// onlyText returns the files of a session's folder without readable ones that are no text, and
// warns of those.
func (x *exporter) onlyText(dir writer.FS, at string, all []file) []file {
	return slices.DeleteFunc(all, func(f file) bool {
		if !made(f.name) {
			return false
		}
		text, err := isText(dir, f.name, f.size)
		if err == nil && !text {
			x.warn("%s/%s is left out: its %d bytes are no text of ours; it is made from the log, which has all of it", at, f.name, f.size)
		}
		return err == nil && !text // after an error the export says what is wrong with it
	})
}
