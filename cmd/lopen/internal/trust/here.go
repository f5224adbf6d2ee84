package trust

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Here is what a user said in a project: what they set with config set, and that their agents' sessions are
// kept there. It lies in the user's state folder, one file a folder, as what is in the project may come
// with a clone, a checkout or from an agent.
type Here struct {
	Folder   string           `json:"folder"`
	Kept     string           `json:"kept,omitempty"`     // the store in which they said so
	Told     string           `json:"told,omitempty"`     // the store of which they were told how to
	Settings map[string]Noted `json:"settings,omitempty"` // by name

	Checks  map[string]string `json:"checks,omitempty"`  // what judged the tasks of each module last
	Commits string            `json:"commits,omitempty"` // what git ran at the last run that committed

	now string // the store that is there
}

const storeDir = ".lopen" // in a project

// hereFolder is that of the files in the user's state folder. The tracker of files never looks into one of this
// name, so that what is noted is no change where the user's home is the project.
const hereFolder = "here/" + storeDir

// A Noted is a value of the project's config.json, and the store in which it was set.
type Noted struct {
	Value strictjson.Value `json:"value"`
	Store string           `json:"store,omitempty"`
}

// Same says of the store in which something was said that it is the one that is there, and not another in its place. It is
// false where the system tells nothing that distinguishes them.
func (h *Here) Same(store string) bool { return store != "" && store == h.now }

// Keep notes that the user wants sessions kept in the store that is there.
func (h *Here) Keep() { h.Kept = h.now }

// Judged notes the check that judges a module's tasks from now on.
func (h *Here) Judged(module, check string) {
	if h.Checks == nil {
		h.Checks = map[string]string{}
	}
	h.Checks[module] = check
}

// CheckOf is the check that judged a module's tasks last in this folder, "" for none. It may have been in another store: an
// agent that puts a copy in its place is rid of no check.
func (h *Here) CheckOf(module string) string { return h.Checks[module] }

// Tell notes that the user was told of the store that is there, and reports whether they were not before.
func (h *Here) Tell() (first bool) {
	now := cmp.Or(h.now, "no folder") // but a symlink, perhaps
	first, h.Told = h.Told != now, now
	return first
}

// Set notes a setting.
func (h *Here) Set(name string, value strictjson.Value) {
	if h.Settings == nil {
		h.Settings = map[string]Noted{}
	}
	h.Settings[name] = Noted{value, h.now}
}

// Here returns what the user said in a folder. What cannot be read is nothing, and the error names it.
func (s *Store) Here(folder string) (Here, error) {
	folder, err := s.folder(folder)
	if err != nil {
		return Here{}, err
	}
	h, err := readHere(filepath.Join(s.dir, hereOf(folder)))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	} else if err == nil && h.Folder != folder {
		h, err = Here{}, fmt.Errorf("what was set in %s counts as nothing: its file in %s is about %s", folder, s.dir, h.Folder)
	}
	h.Folder, h.now = folder, placeOf(filepath.Join(folder, storeDir))
	return h, err
}

// SetHere changes what the user said in a folder. What is damaged is replaced.
func (s *Store) SetHere(folder string, change func(*Here)) error {
	folder, err := s.folder(folder)
	if err != nil {
		return err
	}
	return s.alone(func() error {
		h, _ := s.Here(folder)
		change(&h)
		data, err := strictjson.MarshalLines(h)
		if err != nil {
			return err
		}
		return Replace(filepath.Join(s.dir, hereOf(folder)), append(data, '\n'))
	})
}

// folder returns a folder's real path.
func (s *Store) folder(name string) (string, error) {
	if s.err != nil {
		return "", s.err
	}
	path, err := filepath.Abs(name)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("find what was approved in %s: %w", name, err)
	}
	return path, nil
}

func readHere(path string) (h Here, err error) {
	data, err := owner.ReadFile(path, maxApprovals)
	if err == nil {
		err = strictjson.Unmarshal(data, &h)
	}
	if err != nil {
		return Here{}, fmt.Errorf("what was set is damaged and counts as nothing: %s: %w", path, err)
	}
	return h, nil
}

// AllHere returns what the user said, by folder. What cannot be read is left out; the error names it.
func (s *Store) AllHere() (all []Here, err error) {
	if s.err != nil {
		return nil, s.err
	}
	paths, err := filepath.Glob(filepath.Join(s.dir, filepath.FromSlash(hereFolder), "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list what was set: %w", err)
	}
	for _, path := range paths {
		if h, rerr := readHere(path); rerr == nil {
			all = append(all, h)
		} else {
			err = errors.Join(err, rerr)
		}
	}
	slices.SortFunc(all, func(a, b Here) int { return strings.Compare(a.Folder, b.Folder) })
	return all, err
}

// ForgetHere forgets what the user said in the folders that match, and returns how much it was.
func (s *Store) ForgetHere(match func(Project) bool) (n int, err error) {
	all, err := s.AllHere()
	for _, h := range all {
		if !match(Project{Folder: h.Folder}) {
			continue
		}
		if n += len(h.Settings); h.Kept != "" {
			n++
		}
		err = errors.Join(err, os.Remove(filepath.Join(s.dir, hereOf(h.Folder))))
	}
	return n, err
}

// hereOf is the name of a folder's file. The folder is a real path.
func hereOf(folder string) string {
	return filepath.FromSlash(fmt.Sprintf("%s/%x.json", hereFolder, sha256.Sum256([]byte(folder))))
}
