package trust

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A Command is what is approved: exactly one of Argv and Shell is set.
type Command struct {
	Argv  []string `json:"argv,omitempty"`
	Shell string   `json:"sh,omitempty"` // for sh -c
}

func (c Command) String() string {
	if c.Shell != "" {
		return "sh -c " + Quote([]string{c.Shell})
	}
	return Quote(c.Argv)
}

func (c Command) equal(d Command) bool { return c.Shell == d.Shell && slices.Equal(c.Argv, d.Argv) }

// Quote writes a command as a POSIX shell would have to be given it.
func Quote(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = w
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r))
		}) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// A Store keeps one user's approvals.
type Store struct{ dir string }

// Open returns the approvals in a folder, which need not exist.
func Open(dir string) *Store { return &Store{dir: dir} }

// DefaultDir is $XDG_STATE_HOME/lopen, or what the system has in its place.
func DefaultDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "lopen"), nil
	}
	switch runtime.GOOS {
	case "windows", "darwin", "ios":
		dir, err := os.UserConfigDir()
		if err != nil {
			return "", fmt.Errorf("find the folder for approvals: %w", err)
		}
		return filepath.Join(dir, "lopen"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("find the folder for approvals: neither XDG_STATE_HOME nor HOME is set")
	}
	return filepath.Join(home, ".local", "state", "lopen"), nil
}

// record is the content of a project's file.
type record struct {
	Folder   string     `json:"folder"`
	Commands []approval `json:"commands"`
}

type approval struct {
	Command
	ApprovedAt time.Time `json:"approvedAt"`
}

// Approve remembers that the user approved exactly c for a folder.
func (s *Store) Approve(folder string, c Command) error {
	path, folder, err := s.file(folder)
	if err != nil {
		return err
	}
	r, err := read(path)
	if err != nil && !errors.Is(err, errDamaged) {
		return err
	}
	if r.approved(c) {
		return nil
	}
	r.Folder = folder
	r.Commands = append(r.Commands, approval{Command: c, ApprovedAt: time.Now().UTC().Truncate(time.Second)})
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	return replace(path, append(data, '\n'))
}

// Approved says whether the user approved exactly c for a folder. A file that
// cannot be read approves nothing, and the error says so.
func (s *Store) Approved(folder string, c Command) (bool, error) {
	path, _, err := s.file(folder)
	if err != nil {
		return false, err
	}
	r, err := read(path)
	return err == nil && r.approved(c), err
}

func (r *record) approved(c Command) bool {
	return slices.ContainsFunc(r.Commands, func(a approval) bool { return a.equal(c) })
}

// file returns the path of a folder's file and the folder's real path.
func (s *Store) file(folder string) (path, name string, err error) {
	if name, err = filepath.Abs(folder); err == nil {
		name, err = filepath.EvalSymlinks(name)
	}
	if err != nil {
		return "", "", fmt.Errorf("find the approvals of %s: %w", folder, err)
	}
	return filepath.Join(s.dir, fmt.Sprintf("approved-%x.json", sha256.Sum256([]byte(name)))), name, nil
}

var errDamaged = errors.New("the file of approvals is damaged and counts as empty")

func read(path string) (record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("read approvals: %w", err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, fmt.Errorf("%w: %s: %w", errDamaged, path, err)
	}
	return r, nil
}

// replace writes a file as a whole. After a power cut an approval may be
// forgotten, which costs a question; half of one is never read.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("approve: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
