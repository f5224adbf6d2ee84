package checkpoint

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// Chains returns the names of the chains in a checkpoints folder, sorted. A folder that is
// not there has none.
func Chains(dir writer.FS) (names []string, err error) {
	entries, err := dir.ReadDir(".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, writer.NewError("look for checkpoints", dir.Name(), writer.NotCommitted, err)
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), chainSuffix); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names, nil
}

// Extract returns the lines of entries byte for byte, each with a line that says that it was
// removed or is pinned: in the file of an empty chain they are the same entries with the same
// IDs. want says of an entry whether it is included, and why its objects are left out, which
// makes it a removed one; "" leaves it as it is. Removed entries say whose intervals they end.
// Extract takes no lock. A chain without a file has no lines.
func (s *Store) Extract(want func(*Entry) (included bool, left string, err error)) (lines []byte, err error) {
	if want == nil {
		return nil, absent("read checkpoints", "function")
	}
	path := filepath.Join(s.dir.Name(), s.chainFile())
	data, err := writer.ReadText(s.dir, s.chainFile(), maxChain)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := parse(data, path, nil)
	if err != nil {
		return nil, damaged(path, err)
	}
	for i, e := range c.entries {
		included, left, err := want(e)
		if err != nil {
			return nil, err
		}
		if !included {
			continue
		}
		line := data[c.starts[i]:]
		lines = append(lines, line[:bytes.IndexByte(line, '\n')+1]...)
		var more any
		switch why := cmp.Or(e.Removed, left); {
		case why != "":
			more = removal{Removed: e.Number, Why: why}
		case e.Pinned:
			more = pinning{Pin: e.Number, Pinned: true}
		default:
			continue
		}
		add, err := lineFormat.Encode(more)
		if err != nil {
			return nil, err
		}
		lines = append(lines, add...)
	}
	return lines, nil
}
