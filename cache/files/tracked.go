package files

import (
	"bytes"
	"slices"
	"sort"
	"strings"
)

// TrackedPath is the Path of the IgnoreFile that holds no patterns but the names in git's index: what is
// tracked is not ignored, whatever a .gitignore matches. Its Data is what [TrackedNames] returns, in order and
// each with a NUL behind it. nil Data says that git could not be asked.
const TrackedPath = "//tracked"

// MaxTracked bounds the Data of TrackedPath, in bytes.
const MaxTracked = 128 << 20

// TrackedNames returns the Data of the IgnoreFile at TrackedPath. names are relative to the root, in any
// order.
func TrackedNames(names []string) []byte {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	data := make([]byte, 0, len(names)*48)
	for _, name := range names {
		data = append(append(data, name...), 0)
	}
	return data
}

// tracked are the names of TrackedNames.
type tracked []byte

// split takes the tracked names out of ignore files.
func split(all []IgnoreFile) ([]IgnoreFile, tracked) {
	i := slices.IndexFunc(all, func(f IgnoreFile) bool { return f.Path == TrackedPath })
	if i < 0 {
		return all, nil
	}
	return slices.Delete(slices.Clone(all), i, i+1), all[i].Data
}

// trackedBy returns the names that were found and those in force, once if they are the same.
func trackedBy(opts Options) (all []tracked) {
	_, found := split(opts.Outside)
	if len(found) > 0 {
		all = append(all, found)
	}
	if opts.InForce != nil && len(opts.InForce.names) > 0 && !bytes.Equal(found, opts.InForce.names) {
		all = append(all, opts.InForce.names)
	}
	return all
}

// has reports whether a path is tracked or, of a folder, something in it. A folder that is tracked itself is
// a submodule.
func (t tracked) has(path string, dir bool) bool {
	if len(t) == 0 {
		return false
	}
	if string(t.from(path)) == path {
		return true
	}
	below := path + "/"
	return dir && strings.HasPrefix(string(t.from(below)), below)
}

// from returns the first name that is not before a text.
func (t tracked) from(text string) []byte {
	return t.name(sort.Search(len(t), func(i int) bool { return string(t.name(i)) >= text }))
}

// name returns the name that byte i is in; the NUL behind a name is a part of it.
func (t tracked) name(i int) []byte {
	if i >= len(t) {
		return nil
	}
	begin := bytes.LastIndexByte(t[:i], 0) + 1
	end := bytes.IndexByte(t[i:], 0)
	if end < 0 {
		return t[begin:]
	}
	return t[begin : i+end]
}
