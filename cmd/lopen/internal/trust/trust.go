package trust

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Command is what is approved: exactly one of Argv and Shell is set.
type Command struct {
	Argv  []string `json:"argv,omitempty"`
	Shell string   `json:"sh,omitempty"` // for sh -c
}

func (c Command) String() string {
	if c.Shell != "" {
		return "sh -c " + plain.Quote(c.Shell)
	}
	return plain.Quote(c.Argv...)
}

func (c Command) equal(d Command) bool { return c.Shell == d.Shell && slices.Equal(c.Argv, d.Argv) }

// A Store keeps one user's approvals.
type Store struct {
	dir string
	err error // why there are none, and none can be kept
}

// Open returns the approvals in [DefaultDir]. If that is not believed, each call says so.
func Open(getenv func(string) string) (*Store, error) {
	dir, err := DefaultDir(getenv)
	var exposed *owner.Error
	if err != nil && !errors.As(err, &exposed) {
		return nil, err
	}
	return &Store{dir, err}, nil
}

// DefaultDir is $XDG_STATE_HOME/lopen, or what the system has in its place. The error is an [*owner.Error] if other
// users may write there: then nothing there is believed.
func DefaultDir(getenv func(string) string) (string, error) {
	dir, err := stateDir(getenv)
	for _, in := range []string{"", hereFolder, turnsFolder} { // and the folders above
		if err == nil {
			err = owner.Private(filepath.Join(dir, filepath.FromSlash(in)), getenv("HOME"))
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w: nothing there is believed, and nothing is kept there; XDG_STATE_HOME names another folder", err)
	}
	return dir, nil
}

// MakeDir is DefaultDir, which is made where there is none.
func MakeDir(getenv func(string) string) (string, error) {
	dir, err := DefaultDir(getenv)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", err
	}
	return DefaultDir(getenv) // somebody else may have made it meanwhile
}

func stateDir(getenv func(string) string) (string, error) {
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
		return "", errors.New("find the folder for approvals and for git: neither XDG_STATE_HOME nor HOME is set; set HOME")
	}
	return filepath.Join(home, ".local", "state", "lopen"), nil
}

// turnsFolder is that of what was agreed for the turns of agents; see internal/turns.
const turnsFolder = "turns/.lopen"

// A Project is what approvals are given for: the repository where there is one, so that
// it may be moved and that another repository in its place has none of them, else the
// folder.
type Project struct {
	Folder     string // its path
	Repository string // what distinguishes it from others, wherever it lies; "" where it is none
}

// Is says whether q is the same project: the same repository, or the same folder. Folders
// count by their real path.
func (p Project) Is(q Project) bool {
	if p.Repository != "" && p.Repository == q.Repository {
		return true
	}
	folder := p.Folder
	if target, err := filepath.EvalSymlinks(folder); err == nil {
		folder = target
	}
	return folder == q.Folder
}

// record is the content of a project's file.
type record struct {
	Folder     string     `json:"folder"` // where it lay when something was approved last
	Repository string     `json:"repository,omitempty"`
	Commands   []approval `json:"commands"`
}

type approval struct {
	Command
	ApprovedAt time.Time `json:"approvedAt"`
}

// Approve remembers that the user approved exactly c for a project.
func (s *Store) Approve(p Project, c Command) error {
	path, p, err := s.file(p)
	if err != nil {
		return err
	}
	return s.alone(func() error {
		r, err := read(path)
		if err != nil && !errors.Is(err, errDamaged) {
			return err
		}
		if r.find(c.equal) != nil {
			return nil
		}
		r.Folder, r.Repository = p.Folder, p.Repository
		r.Commands = append(r.Commands, approval{Command: c, ApprovedAt: time.Now().UTC().Truncate(time.Second)})
		data, err := strictjson.MarshalLines(r)
		if err != nil {
			return fmt.Errorf("approve: %w", err)
		}
		return Replace(path, append(data, '\n'))
	})
}

// alone calls fn while nobody else changes what is kept.
func (s *Store) alone(fn func() error) error {
	path := filepath.Join(s.dir, filepath.FromSlash(hereFolder))
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("keep approvals: %w", err)
	}
	dir, err := writer.OpenFS(path)
	if err != nil {
		return fmt.Errorf("keep approvals: %w", err)
	}
	lock, err := writer.LockWait(context.Background(), dir, ".lock", writer.OwnerOf(os.Getpid(), "lopen"))
	if err != nil {
		return errors.Join(fmt.Errorf("keep approvals: %w", err), dir.Close())
	}
	return errors.Join(fn(), lock.Unlock(), dir.Close())
}

// Approved returns c if the user approved exactly it for a project; else, of the
// approved ones that become c when stored makes of them what is written into the project,
// the one that was approved last. nil is none. A file that cannot be read approves
// nothing, and the error says so.
func (s *Store) Approved(p Project, c Command, stored func(Command) Command) (*Command, error) {
	path, _, err := s.file(p)
	if err != nil {
		return nil, err
	}
	r, err := read(path)
	if err != nil {
		return nil, err
	}
	if found := r.find(c.equal); found != nil {
		return found, nil
	}
	return r.find(func(a Command) bool { return stored(a).equal(c) }), nil
}

// find returns the command that was approved last of those that are right.
func (r *record) find(right func(Command) bool) *Command {
	for _, a := range slices.Backward(r.Commands) {
		if right(a.Command) {
			return &a.Command
		}
	}
	return nil
}

// An Approval is a command that the user approved for a project.
type Approval struct {
	Project
	Command
	At time.Time
}

// All returns every approval, by folder and in the order in which they were given. A
// file that cannot be read approves nothing and is left out; the error names it.
func (s *Store) All() ([]Approval, error) {
	var all []Approval
	err := s.each(func(_ string, r record) error {
		for _, a := range r.Commands {
			all = append(all, Approval{Project{r.Folder, r.Repository}, a.Command, a.ApprovedAt})
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b Approval) int { return strings.Compare(a.Folder, b.Folder) })
	return all, err
}

// Revoke forgets every approval of the projects that match, and returns how many
// there were. What cannot be read is left, as it approves nothing; the error names it.
func (s *Store) Revoke(match func(Project) bool) (int, error) {
	n := 0
	err := s.each(func(path string, r record) error {
		if !match(Project{r.Folder, r.Repository}) {
			return nil
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("revoke approvals: %w", err)
		}
		n += len(r.Commands)
		return nil
	})
	return n, err
}

// each calls fn with every project's file, and joins what went wrong.
func (s *Store) each(fn func(path string, r record) error) error {
	if s.err != nil {
		return s.err
	}
	paths, err := filepath.Glob(filepath.Join(s.dir, "approved-*.json"))
	if err != nil {
		return fmt.Errorf("list approvals: %w", err)
	}
	var all error
	for _, path := range paths {
		r, err := read(path)
		if err == nil && filepath.Base(path) == fileOf(Project{r.Folder, r.Repository}) { // else it approves nothing
			err = fn(path, r)
		}
		all = errors.Join(all, err)
	}
	return all
}

// file returns the path of a project's file, and the project with the folder's real path.
func (s *Store) file(p Project) (string, Project, error) {
	folder, err := s.folder(p.Folder)
	if err != nil {
		return "", p, err
	}
	p.Folder = folder
	return filepath.Join(s.dir, fileOf(p)), p, nil
}

// fileOf is the name of a project's file. Its folder is a real path.
func fileOf(p Project) string {
	key := "folder\x00" + p.Folder
	if p.Repository != "" {
		key = "repository\x00" + p.Repository
	}
	return fmt.Sprintf("approved-%x.json", sha256.Sum256([]byte(key)))
}

// maxApprovals bounds the file of one project's approvals, in bytes.
const maxApprovals = 16 << 20

var errDamaged = errors.New("the file of approvals is damaged and counts as empty")

func read(path string) (record, error) {
	var r record
	data, err := owner.ReadFile(path, maxApprovals)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read approvals: %w", err)
	}
	if err := strictjson.Unmarshal(data, &r); err != nil {
		return record{}, fmt.Errorf("%w: %s: %w", errDamaged, path, err)
	}
	return r, nil
}

// Replace writes a file of the user's own state as a whole and durably, with mode 0600: half of it is never read.
func Replace(path string, data []byte) error {
	dir, err := writer.OpenFS(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(writer.ReplaceFile(dir, filepath.Base(path), data, 0o600), dir.Close())
}
