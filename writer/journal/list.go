package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
)

// A name is the name of a segment: journal-{epoch}-{n}.jsonl, both numbers from 1, with
// the suffix of its codec when the segment is compressed.
type name struct {
	epoch, n uint64
	codec    codec.Codec
}

// packed reports whether the segment is compressed.
func (n name) packed() bool { return n.codec != codec.None }

func (n name) String() string {
	return fmt.Sprintf("journal-%d-%d.jsonl", n.epoch, n.n) + n.codec.Suffix()
}

// plain returns the name without the suffix of a compressed segment.
func (n name) plain() name { return name{epoch: n.epoch, n: n.n} }

func (n name) compare(o name) int {
	return cmp.Or(cmp.Compare(n.epoch, o.epoch), cmp.Compare(n.n, o.n), cmp.Compare(n.codec, o.codec))
}

// parseName parses the name of a segment. It accepts one spelling only: no leading zeros,
// no signs.
func parseName(s string) (name, bool) {
	var n name
	plain, c := codec.Cut(s)
	_, err := fmt.Sscanf(plain, "journal-%d-%d.jsonl", &n.epoch, &n.n)
	n.codec = c
	return n, err == nil && n.epoch > 0 && n.n > 0 && n.String() == s
}

// IsSegment reports whether a file's name is that of a segment.
func IsSegment(file string) bool {
	_, ok := parseName(file)
	return ok
}

// segments lists the segments of a folder in the order in which they are read.
func segments(dir writer.FS) ([]name, error) {
	entries, err := dir.ReadDir(".")
	if err != nil {
		return nil, writer.NewError("list journal", dir.Name(), writer.NotCommitted, err)
	}
	var all []name
	for _, e := range entries {
		if n, ok := parseName(e.Name()); ok {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, name.compare)
	return all, nil
}

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
