package plugin

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// open opens the folder that the Set's folder lies in: Base, or the one above it where Base is missing.
// at is the Set's folder below it.
func (s *Set) open() (dir writer.FS, at string, err error) {
	dir, err = writer.OpenFS(s.Base)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, s.Dir, err
	}
	dir, err = writer.OpenFS(filepath.Dir(s.Base))
	return dir, path.Join(filepath.Base(s.Base), s.Dir), err
}

// Due returns the files that Install would write: those that are missing, and those of ours with
// another content. The error is a *ForeignError where something of somebody else's is in the way.
func (s *Set) Due() ([]File, error) {
	dir, at, err := s.open()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	st, err := s.look(dir, at)
	if err != nil {
		return nil, err
	}
	return s.due(st)
}

// Install writes what is due, durably. After an error some of the files may be written; Install
// and Remove go on from there.
func (s *Set) Install() error {
	dir, at, err := s.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.install(dir, at)
}

func (s *Set) install(dir writer.FS, at string) error {
	st, err := s.look(dir, at)
	if err != nil {
		return err
	}
	files, err := s.due(st)
	if err != nil {
		return err
	}
	now := s.manifest()
	if now.Made, err = s.makeFolders(dir, at, st); err != nil {
		return err
	}
	// Until all is written, both the contents of before and those of now are ours.
	both := *now
	both.Files = maps.Clone(now.Files)
	if st.old != nil {
		for name, sums := range st.old.Files {
			both.Files[name] = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(sums), both.Files[name]...))))
		}
	}
	if len(files) > 0 {
		if err := s.note(dir, at, st, &both); err != nil {
			return err
		}
	}
	for _, f := range files {
		if d := path.Dir(f.Name); d != "." {
			if err := writer.MkdirDurable(dir, path.Join(at, d)); err != nil {
				return err
			}
		}
		if err := writer.ReplaceFile(dir, path.Join(at, f.Name), f.Data, 0o644); err != nil {
			return err
		}
	}
	if err := s.clear(dir, at); err != nil {
		return err
	}
	return s.note(dir, at, st, now)
}

func (s *Set) manifest() *manifest {
	m := &manifest{Note: note, Files: map[string][]string{}}
	for _, f := range s.Files {
		m.Files[f.Name] = []string{hash(f.Data)}
	}
	return m
}

// makeFolders makes the Set's folder and those above it. It returns which of those above were not there
// before the first Install.
func (s *Set) makeFolders(dir writer.FS, at string, st *standing) (made []string, err error) {
	if st.old != nil {
		made = st.old.Made
	}
	var above []string
	for d := at; d != "."; d = path.Dir(d) {
		above = append(above, d)
	}
	for _, d := range slices.Backward(above) {
		there, err := folder(dir, d)
		if err == nil && !there {
			err = writer.MkdirDurable(dir, d)
			if below, ok := s.above(at, d); ok {
				made = append(made, below)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return made, nil
}

// above returns the path below Base of a folder between Base and the Set's.
func (s *Set) above(at, d string) (string, bool) {
	base := path.Clean(at[:len(at)-len(s.Dir)])
	if s.Dir == "." || d == at || d == base {
		return "", false
	}
	rel, err := filepath.Rel(base, d)
	return filepath.ToSlash(rel), err == nil
}

// note writes a manifest, unless it is there already.
func (s *Set) note(dir writer.FS, at string, st *standing, m *manifest) error {
	data, err := strictjson.MarshalLines(m)
	if err != nil {
		return err
	}
	if st.old != nil {
		if old, err := strictjson.MarshalLines(st.old); err == nil && string(old) == string(data) {
			return nil
		}
	}
	st.old = m
	return writer.ReplaceFile(dir, path.Join(at, Manifest), append(data, '\n'), 0o644)
}

// clear removes what writes that were cut off left.
func (s *Set) clear(dir writer.FS, at string) error {
	for _, sub := range append([]string{"."}, s.folders()...) {
		if err := writer.RemoveTemps(dir, path.Join(at, sub), s.own); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes what Install wrote, and the folders that are empty then. It returns whether there was
// anything, and the paths that stay: they are not as lopen wrote them, or are not lopen's.
func (s *Set) Remove() (found bool, stay []string, err error) {
	dir, at, err := s.open()
	if err != nil {
		return false, nil, err
	}
	defer dir.Close()
	return s.remove(dir, at)
}

func (s *Set) remove(dir writer.FS, at string) (found bool, stay []string, err error) {
	if there, err := folder(dir, at); err != nil || !there {
		return false, nil, err
	}
	st, err := s.look(dir, at)
	if err != nil {
		return false, nil, err
	}
	found = st.old != nil
	if err := s.clear(dir, at); err != nil {
		return found, nil, err
	}
	for _, f := range slices.Backward(s.Files) {
		if _, there := st.is[f.Name]; !there {
			continue
		}
		if !st.ours(f) {
			stay = append(stay, s.Path(f.Name))
			continue
		}
		found = true
		if err := remove(dir, path.Join(at, f.Name)); err != nil {
			return found, stay, err
		}
	}
	for _, name := range st.other {
		stay = append(stay, s.Path(name))
	}
	slices.Sort(stay)
	return found, stay, s.removeRest(dir, at, st)
}

// removeRest removes the folders that are empty, and the manifest.
func (s *Set) removeRest(dir writer.FS, at string, st *standing) error {
	for _, sub := range s.folders() {
		if err := removeEmpty(dir, path.Join(at, sub)); err != nil {
			return err
		}
	}
	if st.old != nil {
		if err := remove(dir, path.Join(at, Manifest)); err != nil {
			return err
		}
	}
	if s.Dir == "." {
		return nil
	}
	if err := removeEmpty(dir, at); err != nil || st.old == nil {
		return err
	}
	for _, d := range slices.Backward(st.old.Made) {
		// Only what lies above the Set's folder, whatever the manifest says.
		if rel, err := filepath.Rel(d, s.Dir); err != nil || !filepath.IsLocal(rel) || rel == "." || !filepath.IsLocal(d) {
			continue
		}
		if err := removeEmpty(dir, d); err != nil {
			return err
		}
	}
	return nil
}

func remove(dir writer.FS, name string) error {
	err := dir.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = dir.SyncDir(path.Dir(name))
	}
	if err != nil {
		return writer.NewError("remove", filepath.Join(dir.Name(), name), writer.NotCommitted, err)
	}
	return nil
}

// removeEmpty removes a folder that has nothing in it.
func removeEmpty(dir writer.FS, name string) error {
	entries, err := dir.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return remove(dir, name)
}
