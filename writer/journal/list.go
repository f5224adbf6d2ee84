package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer"
)

// ListFile is the file with the list of a journal's segments: the first line of each, in
// order. It is replaced before a segment gets its first record. So it shows when the newest
// segment is missing, and it has the content of a damaged first line. No record is lost with
// the list, because the segments have the same first lines.
const ListFile = "segments"

// maxList bounds the size of a list that is read, in bytes.
const maxList = 16 << 20

// listed maps the name of a segment to its first line in the list.
type listed map[name]Segment

// readList reads the list. It returns the lines that are intact, with an error if the list
// is missing or damaged.
func readList(dir writer.FS) (listed, error) {
	all := listed{}
	data, err := writer.ReadFile(dir, ListFile, maxList)
	if err != nil {
		return all, err
	}
	bad := 0
	for line := range bytes.Lines(data) {
		h, err := decodeHeader(line)
		if err != nil {
			bad++
			continue
		}
		all[h.name()] = Segment{name: h.name(), header: h, ok: true, length: int64(len(line))}
	}
	if len(data) == 0 {
		return all, badList(dir, errors.New("it is empty"))
	}
	if bad > 0 {
		return all, badList(dir, fmt.Errorf("%d of %d lines are damaged", bad, len(all)+bad))
	}
	return all, nil
}

func badList(dir writer.FS, err error) error {
	return &writer.Error{Op: "read journal", Path: filepath.Join(dir.Name(), ListFile), Class: writer.ClassCorrupt, Err: err}
}

// of deletes the segments of other sessions, and reports whether there were none.
func (l listed) of(session string) bool {
	n := len(l)
	maps.DeleteFunc(l, func(_ name, h Segment) bool { return h.header.Session != session })
	return len(l) == n
}

// writeList replaces the list, durably.
func writeList(dir writer.FS, all []header) error {
	var data []byte
	for _, h := range all {
		line, err := headers.Encode(h)
		if err != nil {
			return err
		}
		data = append(data, line...)
	}
	return writer.ReplaceFile(dir, ListFile, data, 0o600)
}
