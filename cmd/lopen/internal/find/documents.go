package find

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/writer/documents"
)

// maxFile bounds a plan, a specification or a research document, in bytes.
const maxFile = 4 << 20

// file adds a document. It is read for each search: its content alone says whether it has changed.
func (c *corpus) file(f File, shown func(*File) string) {
	data, err := documents.Read(f.In, f.Path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		c.notes = append(c.notes, fmt.Sprintf("%s was not searched: %v", f.Path, err))
		return
	}
	var changed time.Time
	if info, err := fs.Stat(f.In, f.Path); err == nil {
		changed = info.ModTime().UTC().Truncate(time.Millisecond)
	}
	sum := sha256.Sum256(data)
	key := "file " + f.Path
	if _, twice := c.of[key]; twice { // modules may share a folder
		return
	}
	c.of[key] = Hit{Module: f.Module, Path: f.Path}
	if c.shown[key] = f.Path; shown != nil {
		c.shown[key] = shown(&f)
	}
	c.sources = append(c.sources, search.Source{
		// The time is in hits and in the order.
		Key: key, Version: fmt.Sprintf("%d %s %d", textVersion, hex.EncodeToString(sum[:16]), changed.UnixMilli()), Order: changed,
		Read: func(_ uint64, _ string, fn func(*search.Document) error) (uint64, string, error) {
			return 0, "", sections(data, func(line uint64, text string) error {
				return fn(&search.Document{Number: line, Time: changed, Kind: f.Kind, Files: []string{f.Path}, Text: text})
			})
		},
	})
}

// sections calls fn with each part of a document from one heading to the next, and with several parts of a long one, so
// that the line of each is known.
func sections(data []byte, fn func(line uint64, text string) error) error {
	begin, first := 0, uint64(1)
	line := uint64(1)
	for at := 0; at < len(data); line++ {
		size := bytes.IndexByte(data[at:], '\n') + 1
		if size == 0 {
			size = len(data) - at
		}
		if (data[at] == '#' || at+size-begin > search.MaxPiece) && at > begin {
			if err := fn(first, string(data[begin:at])); err != nil {
				return err
			}
			begin, first = at, line
		}
		at += size
	}
	if begin == len(data) {
		return nil
	}
	return fn(first, string(data[begin:]))
}
