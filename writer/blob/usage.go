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
	"github.com/lopen-dev/lopen/writer/codec"
)

// Usage is the sum of the lengths of all regular files in the folder, in bytes: of blobs,
// packs, the lock, temporary files and foreign files. Folders do not count.
// `du --apparent-size` gives the same sum for these files. It takes no lock, and leaves out
// files that are removed meanwhile.
func (s *Store) Usage() (bytes int64, err error) {
	if err = s.usage(".", &bytes); err != nil {
		return 0, writer.NewError("measure blobs", s.dir.Name(), writer.NotCommitted, err)
	}
	return bytes, nil
}

func (s *Store) usage(dir string, sum *int64) error {
	entries, err := s.dir.ReadDir(dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			err = s.usage(name, sum)
		case e.Type().IsRegular():
			var info fs.FileInfo
			if info, err = s.dir.Lstat(name); err == nil {
				*sum += info.Size()
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

// All yields the hashes of all objects in ascending order, each once. Before them it yields
// an error for each pack or folder that cannot be read; their objects are missing.
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

// entries yields the objects of each folder and of each pack.
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
		for x, err := range s.indexes(op) {
			hashes := make([]Hash, x.len())
			for i := range hashes {
				hashes[i] = x.at(i).hash()
			}
			if !yield(hashes, err) {
				return
			}
		}
	}
}

// indexes lists the packs again and yields the index of each. It leaves out packs that a sweep
// removes meanwhile.
func (s *Store) indexes(op string) iter.Seq2[index, error] {
	return func(yield func(index, error) bool) {
		_, err := s.look()
		packs, _ := s.known()
		if err != nil && !yield(nil, err) {
			return
		}
		for _, p := range packs {
			x, err := s.index(op, p)
			if !errors.Is(err, fs.ErrNotExist) && !yield(x, err) {
				return
			}
		}
	}
}

// Sizes returns how many bytes each object takes on the disk: its files, or its part of a pack.
// It reads no content, and takes no lock. Objects of damaged packs are missing, and those that
// a sweep moves or removes meanwhile may be.
func (s *Store) Sizes() (map[Hash]int64, error) {
	const op = "measure blobs"
	sizes := map[Hash]int64{}
	for x, err := range s.indexes(op) {
		if err != nil && writer.ClassOf(err) != writer.ClassCorrupt {
			return nil, err
		}
		for i := range x.len() {
			sizes[x.at(i).hash()] = int64(x.at(i).size())
		}
	}
	shards, err := s.shards(op)
	for _, shard := range shards {
		if err == nil {
			err = s.looseSizes(op, shard, sizes)
		}
	}
	return sizes, err
}

// looseSizes adds the files of single contents in a folder.
func (s *Store) looseSizes(op, shard string, sizes map[Hash]int64) error {
	entries, err := s.readDir(op, shard)
	for _, e := range entries {
		h, ok := looseHash(shard, e)
		if !ok {
			continue
		}
		name := path.Join(shard, e.Name())
		info, err := s.dir.Lstat(name)
		if err == nil {
			sizes[h] += info.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return s.failedAt(op, name, h, writer.NotCommitted, err)
		}
	}
	return err
}

// shards returns the folders of blobs with their own files, in ascending order.
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

// loose returns the blobs with their own files in a folder, in ascending order.
func (s *Store) loose(op, shard string) (hashes []Hash, err error) {
	entries, err := s.readDir(op, shard)
	for _, e := range entries {
		if h, ok := looseHash(shard, e); ok {
			hashes = append(hashes, h)
		}
	}
	slices.SortFunc(hashes, func(a, b Hash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(hashes), err
}

// looseHash returns the hash of the blob whose own file is a name in a folder.
func looseHash(shard string, e fs.DirEntry) (Hash, bool) {
	name, _ := codec.Cut(e.Name())
	h, err := ParseHash(shard + name)
	return h, err == nil && e.Type().IsRegular()
}

// readDir lists a folder. A missing folder is empty.
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
