package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

const (
	manifestName = "manifest.json"
	pinName      = "pinned"
	lastName     = "last"
	filePerm     = 0o600
	// leavingPrefix begins the name of a folder that is being made or removed: the
	// one of package writer for what a crash leaves behind.
	leavingPrefix = ".tmp-"
)

// A Store is the checkpoints of one session.
type Store struct {
	dir   writer.FS
	blobs *blob.Store
	tree  writer.FS

	held held

	mu sync.Mutex // held by what writes
}

// New is the Store of a session's checkpoints folder, the blobs, and the project's
// folder. All three stay the caller's to close. It touches nothing.
func New(dir writer.FS, blobs *blob.Store, tree writer.FS) *Store {
	return &Store{dir: dir, blobs: blobs, tree: tree}
}

func (s *Store) path(name string) string { return filepath.Join(s.dir.Name(), name) }

// ErrNotFound says that there is no checkpoint of an ID.
var ErrNotFound = errors.New("no such checkpoint")

// ids returns those that are there, in ascending order.
func (s *Store) ids() ([]ID, error) {
	entries, err := s.dir.ReadDir(".")
	if err != nil {
		return nil, writer.NewError("list checkpoints", s.dir.Name(), writer.NotCommitted, err)
	}
	var ids []ID
	for _, e := range entries {
		if id, err := ParseID(e.Name()); err == nil && e.IsDir() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Load reads a checkpoint in full and checks it; up to 64 MiB of manifests that were
// read stay in memory, the most recently used. The error is [ErrNotFound], or has
// class corrupt or future-version and names the file.
func (s *Store) Load(id ID) (*Manifest, error) {
	return s.held.get(id, func() (*Manifest, int64, error) {
		m, bytes, err := load(s.dir, id.String()+"/"+manifestName)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, 0, fmt.Errorf("%s: %w", id, ErrNotFound)
		}
		if err != nil {
			return nil, 0, err
		}
		if m.ID != id {
			return nil, 0, damaged(s.path(id.String()+"/"+manifestName), fmt.Errorf("it is that of %s", m.ID))
		}
		m.from = s
		return m, bytes, nil
	})
}

// load returns a manifest, and how many bytes it takes in memory.
func load(dir writer.FS, name string) (*Manifest, int64, error) {
	data, err := writer.ReadText(dir, name, MaxManifest)
	if err != nil {
		return nil, 0, err
	}
	m, err := Decode(data)
	if err != nil {
		return nil, 0, damaged(filepath.Join(dir.Name(), name), err)
	}
	return m, int64(len(data)) + int64(len(m.Files.Files))*int64(unsafe.Sizeof(files.Fingerprint{})), nil
}

// damaged is the error of a manifest that cannot be used.
func damaged(path string, err error) error {
	class := writer.ClassCorrupt
	if errors.Is(err, writer.ErrFutureVersion) {
		class = writer.ClassFutureVersion
	}
	return &writer.Error{Op: "read checkpoint", Path: path, Class: class, Err: err}
}

// Info is what [Store.List] knows of a checkpoint.
type Info struct {
	Header
	Pinned bool `json:"pinned"`
	// Inherited says that it was made in the session that this one comes from.
	Inherited bool  `json:"inherited"`
	Err       error `json:"-"` // why the header cannot be read; of it only the ID is set then
}

// List returns all checkpoints, the oldest first. It reads the headers only and
// checks no checksum: Load does.
func (s *Store) List() ([]Info, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	inherited, err := s.Inherited()
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(ids))
	for _, id := range ids {
		info := Info{}
		info.Header, info.Err = s.header(id)
		if info.Err == nil && info.ID != id {
			info.Err = damaged(s.path(id.String()+"/"+manifestName), fmt.Errorf("it is that of %s", info.ID))
		}
		info.ID, info.Inherited = id, id <= inherited
		info.Pinned, err = s.pinned(id)
		if info.Err == nil {
			info.Err = err
		}
		list = append(list, info)
	}
	return list, nil
}

func (s *Store) header(id ID) (Header, error) {
	name := id.String() + "/" + manifestName
	f, _, err := writer.OpenRegular(s.dir, "read checkpoint", name, os.O_RDONLY)
	if err != nil {
		return Header{}, err
	}
	defer f.Close()
	var data []byte
	for buf := make([]byte, 4<<10); len(data) < maxHeader; {
		n, err := f.Read(buf)
		data = append(data, buf[:n]...)
		if head, _, ok := bytes.Cut(data, []byte(filesKey)); ok {
			if err := version(head); err != nil {
				return Header{}, damaged(s.path(name), err)
			}
			h, err := decodeHeader(head)
			if err != nil {
				return Header{}, damaged(s.path(name), err)
			}
			return h, nil
		}
		if err != nil {
			break
		}
	}
	if err := version(data); errors.Is(err, writer.ErrFutureVersion) {
		return Header{}, damaged(s.path(name), err)
	}
	return Header{}, damaged(s.path(name), errors.New("its header has no end"))
}

func (s *Store) pinned(id ID) (bool, error) {
	_, err := s.dir.Lstat(id.String() + "/" + pinName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, writer.NewError("look at checkpoint", s.path(id.String()), writer.NotCommitted, err)
	}
	return true, nil
}

// Pin says durably that a checkpoint is to be kept, or not any more. Only the
// holder of the session calls it.
func (s *Store) Pin(id ID, pinned bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.there(id); err != nil {
		return err
	}
	name := id.String() + "/" + pinName
	if pinned {
		return writer.ReplaceFile(s.dir, name, nil, filePerm)
	}
	err := s.dir.Remove(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return writer.NewError("unpin checkpoint", s.path(name), writer.NotCommitted, err)
	}
	if err := s.dir.SyncDir(id.String()); err != nil {
		return writer.NewError("unpin checkpoint", s.path(name), writer.NotDurable, err)
	}
	return nil
}

func (s *Store) there(id ID) error {
	info, err := s.dir.Lstat(id.String())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return fmt.Errorf("%s: %w", id, ErrNotFound)
	}
	if err != nil {
		return writer.NewError("look at checkpoint", s.path(id.String()), writer.NotCommitted, err)
	}
	return nil
}

// Remove removes a checkpoint, pinned or not, durably: a sweep of the blobs may
// follow. Only the holder of the session calls it.
func (s *Store) Remove(id ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.there(id); err != nil {
		return err
	}
	next, err := s.nextID()
	if err != nil {
		return err
	}
	if id == next-1 { // the number would be given again
		if err := writeMark(s.dir, lastName, id); err != nil {
			return err
		}
	}
	s.held.forget(id)
	away := writer.TempName(id.String())
	if err := s.dir.Rename(id.String(), away); err != nil {
		return writer.NewError("remove checkpoint", s.path(id.String()), writer.NotCommitted, err)
	}
	if err := s.dir.SyncDir("."); err != nil {
		return writer.NewError("remove checkpoint", s.path(id.String()), writer.NotDurable, err)
	}
	if err := s.dir.RemoveAll(away); err != nil {
		return writer.NewError("remove checkpoint", s.path(away), writer.NotDurable, err)
	}
	return nil
}

// nextID is one more than any that was ever given.
func (s *Store) nextID() (ID, error) {
	ids, err := s.ids()
	if err != nil {
		return 0, err
	}
	var last ID
	if len(ids) > 0 {
		last = ids[len(ids)-1]
	}
	removed, err := s.readMark(lastName)
	if err != nil {
		return 0, err
	}
	return max(last, removed) + 1, nil
}

// clear removes the folders that a crash left half made or half removed.
func (s *Store) clear() error {
	entries, err := s.dir.ReadDir(".")
	if err != nil {
		return writer.NewError("clear checkpoints", s.dir.Name(), writer.NotCommitted, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), leavingPrefix) {
			if err := s.dir.RemoveAll(e.Name()); err != nil {
				return writer.NewError("clear checkpoints", s.path(e.Name()), writer.NotCommitted, err)
			}
		}
	}
	return nil
}
