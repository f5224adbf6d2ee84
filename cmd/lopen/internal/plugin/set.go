package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Manifest is the name of the file that says which files are ours.
const Manifest = ".lopen-plugin.json"

// maxFile bounds what is read of a file, in bytes.
const maxFile = 1 << 20

// A File is one of a Set.
type File struct {
	Name string // below the Set's folder, with slashes
	Data []byte
}

// A Set is the files that are put together into a folder.
type Set struct {
	Base  string // the other program's folder; a symlink to one is followed
	Dir   string // below Base; "." is Base itself, which others have files in
	Files []File // in the order in which they are written
}

// Path returns the path of a file of the Set.
func (s *Set) Path(name string) string { return filepath.Join(s.Base, s.Dir, name) }

// A ForeignError says that something in the Set's folder is not what lopen put there.
type ForeignError struct{ Paths []string }

func (e *ForeignError) Error() string {
	return "this is not what lopen put there: " + strings.Join(e.Paths, ", ")
}

// A manifest is what is ours in a folder.
type manifest struct {
	Note  string              `json:"note"`
	Files map[string][]string `json:"files"`          // SHA-256 of what each may hold
	Made  []string            `json:"made,omitempty"` // folders between Base and the Set's, from above
}

const note = "These files belong to lopen; lopen plugin removes them. A file with another hash is left alone."

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A standing is what is in a Set's folder.
type standing struct {
	is    map[string]string // the hash of each file of the Set that is there
	old   *manifest         // nil if there is none
	other []string          // names of the folder, where it is the Set's own, that are not of the Set
}

// look returns what is there. at is the Set's folder below dir. The error says what is in the way.
func (s *Set) look(dir writer.FS, at string) (*standing, error) {
	st := &standing{is: map[string]string{}}
	if there, err := folder(dir, at); err != nil || !there {
		return st, err
	}
	data, err := writer.ReadFile(dir, path.Join(at, Manifest), maxFile)
	switch {
	case err == nil:
		st.old = &manifest{}
		if err := strictjson.Unmarshal(data, st.old); err != nil {
			return nil, fmt.Errorf("read %s: %w; remove this file, and install again", filepath.Join(dir.Name(), at, Manifest), err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	for _, f := range s.Files {
		name := path.Join(at, f.Name)
		if there, err := folder(dir, path.Dir(name)); err != nil {
			return nil, err
		} else if !there {
			continue
		}
		data, err := writer.ReadFile(dir, name, maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		st.is[f.Name] = hash(data)
	}
	if s.Dir == "." {
		return st, nil
	}
	st.other, err = s.others(dir, at)
	return st, err
}

// folder reports whether a folder is there. One that is reached through a symlink is an error.
func folder(dir writer.FS, name string) (bool, error) {
	if name == "." {
		return true, nil
	}
	if there, err := folder(dir, path.Dir(name)); err != nil || !there {
		return false, err
	}
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, writer.NewError("look at", filepath.Join(dir.Name(), name), writer.NotCommitted, err)
	case info.IsDir():
		return true, nil
	case info.Mode()&fs.ModeSymlink != 0:
		return false, &writer.Error{Op: "open", Path: filepath.Join(dir.Name(), name), Class: writer.ClassInvalid, Err: errors.New("it is a symlink and not a folder; move it away")}
	}
	return false, &writer.Error{Op: "open", Path: filepath.Join(dir.Name(), name), Class: writer.ClassInvalid, Err: errors.New("it is no folder; move it away")}
}

// others are the paths below the Set's folder that are not of the Set, folders with a slash.
func (s *Set) others(dir writer.FS, at string) (all []string, err error) {
	for _, sub := range append([]string{"."}, s.folders()...) {
		entries, err := dir.ReadDir(path.Join(at, sub))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name := path.Join(sub, e.Name())
			if name == Manifest || slices.Contains(s.folders(), name) || s.has(name) || s.temporary(name) {
				continue
			}
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all, nil
}

// temporary reports whether a name is that of a temporary file of a write that was cut off.
func (s *Set) temporary(name string) bool {
	base, found := strings.CutPrefix(path.Base(name), ".tmp-")
	i := strings.LastIndexByte(base, '-')
	return found && i > 0 && s.own(base[:i])
}

// own reports whether a name, without its folder, is one of the Set's.
func (s *Set) own(base string) bool {
	return base == Manifest || slices.ContainsFunc(s.Files, func(f File) bool { return path.Base(f.Name) == base })
}

func (s *Set) has(name string) bool {
	return slices.ContainsFunc(s.Files, func(f File) bool { return f.Name == name })
}

// folders are those below the Set's folder that its files lie in.
func (s *Set) folders() (all []string) {
	for _, f := range s.Files {
		if d := path.Dir(f.Name); d != "." && !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

// ours reports whether a file of the Set that is there may be replaced and removed.
func (st *standing) ours(f File) bool {
	is := st.is[f.Name]
	return is == hash(f.Data) || st.old != nil && slices.Contains(st.old.Files[f.Name], is)
}

// due are the files to be written. The error is a *ForeignError if a file, or without a manifest the
// folder, is somebody else's.
func (s *Set) due(st *standing) (all []File, err error) {
	var foreign []string
	for _, f := range s.Files {
		switch is, there := st.is[f.Name]; {
		case !there:
			all = append(all, f)
		case !st.ours(f):
			foreign = append(foreign, s.Path(f.Name))
		case is != hash(f.Data):
			all = append(all, f)
		}
	}
	if st.old == nil {
		for _, name := range st.other {
			foreign = append(foreign, s.Path(name))
		}
	}
	if foreign != nil {
		return nil, &ForeignError{Paths: foreign}
	}
	return all, nil
}
