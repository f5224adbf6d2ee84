package blob

import (
	"bytes"
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// Usage is what a store takes on its disk.
type Usage struct {
	// Bytes are the lengths of all regular files in the folder, added: of blobs and packs, of
	// the lock, of temporary files, and of what somebody else put there. Folders count
	// nothing. It is what `du --apparent-size` says of these files.
	Bytes   int64
	Objects int // files of their own, and contents of packs whose index can be read
	Packs   int
}

// Usage lists the store. It takes no lock; what vanishes meanwhile does not count.
func (s *Store) Usage() (u Usage, err error) {
	if err = s.usage(".", &u); err != nil {
		return Usage{}, writer.NewError("measure blobs", s.dir.Name(), writer.NotCommitted, err)
	}
	for h, err := range s.entries() {
		switch {
		case err == nil:
			u.Objects += len(h)
		case !errors.Is(err, envelope.ErrCorrupt) && !errors.Is(err, envelope.ErrFutureVersion):
			return Usage{}, err
		}
	}
	packs, _ := s.listed()
	u.Packs = len(packs)
	return u, nil
}

func (s *Store) usage(dir string, u *Usage) error {
	entries, err := s.dir.ReadDir(dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			err = s.usage(name, u)
		case e.Type().IsRegular():
			var info fs.FileInfo
			if info, err = s.dir.Lstat(name); err == nil {
				u.Bytes += info.Size()
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// All are the objects that are there, in ascending order, each once. A pack or folder
// that cannot be read is reported before them, and costs what is in it.
func (s *Store) All() iter.Seq2[Hash, error] {
	return func(yield func(Hash, error) bool) {
		var all []Hash
		for hashes, err := range s.entries() {
			if err != nil && !yield(Hash{}, err) {
				return
			}
			all = append(all, hashes...)
		}
		slices.SortFunc(all, func(a, b Hash) int { return bytes.Compare(a[:], b[:]) })
		for _, h := range slices.Compact(all) {
			if !yield(h, nil) {
				return
			}
		}
	}
}

// entries are the objects of each folder and of each pack.
func (s *Store) entries() iter.Seq2[[]Hash, error] {
	return func(yield func([]Hash, error) bool) {
		const op = "list blobs"
		shards, err := s.shards(op)
		if err != nil && !yield(nil, err) {
			return
		}
		for _, shard := range shards {
			if hashes, err := s.loose(op, shard); !yield(hashes, err) {
				return
			}
		}
		_, err = s.look()
		packs, _ := s.known()
		if err != nil && !yield(nil, err) {
			return
		}
		for _, p := range packs {
			x, err := s.index(op, p)
			hashes := make([]Hash, x.len())
			for i := range hashes {
				hashes[i] = x.at(i).hash()
			}
			if !errors.Is(err, fs.ErrNotExist) && !yield(hashes, err) {
				return
			}
		}
	}
}

// shards are the folders of blobs that have files of their own, in ascending order.
func (s *Store) shards(op string) (names []string, err error) {
	entries, err := s.readDir(op, ".")
	for _, e := range entries {
		if _, err := ParseHash(e.Name() + strings.Repeat("0", 2*len(Hash{})-shardLen)); err == nil && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// loose are the objects that have files of their own in a folder, in ascending order.
func (s *Store) loose(op, shard string) (hashes []Hash, err error) {
	entries, err := s.readDir(op, shard)
	for _, e := range entries {
		if h, err := ParseHash(shard + e.Name()); err == nil && e.Type().IsRegular() {
			hashes = append(hashes, h)
		}
	}
	slices.SortFunc(hashes, func(a, b Hash) int { return bytes.Compare(a[:], b[:]) })
	return hashes, err
}

// readDir lists a folder. One that is not there is empty.
func (s *Store) readDir(op, name string) (entries []fs.DirEntry, err error) {
	err = writer.Retry(func() (err error) {
		entries, err = s.dir.ReadDir(name)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, writer.NewError(op, s.path(name), writer.NotCommitted, err)
	}
	return entries, nil
}
