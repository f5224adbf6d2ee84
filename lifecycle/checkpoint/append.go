package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer"
)

func (s *Store) chainFile() string { return s.name + chainSuffix }

// load returns the chain as it is now. It does not decode again what was read before.
func (s *Store) load() (*chain, error) {
	s.chainMu.Lock()
	defer s.chainMu.Unlock()
	path := filepath.Join(s.dir.Name(), s.chainFile())
	info, err := s.dir.Lstat(s.chainFile())
	if errors.Is(err, fs.ErrNotExist) {
		s.read = &chain{next: 1}
		return s.read, nil
	}
	if err != nil {
		return nil, writer.NewError("read checkpoints", path, writer.NotCommitted, err)
	}
	if k := s.read; k != nil && k.info != nil && writer.SameFile(k.info, info) && k.info.Size() == info.Size() && k.info.ModTime().Equal(info.ModTime()) {
		return k, nil
	}
	data, err := writer.ReadText(s.dir, s.chainFile(), maxChain)
	if err != nil {
		return nil, err
	}
	c, err := parse(data, path, s.read)
	if err != nil {
		return nil, damaged(path, err)
	}
	c.info = info
	s.read = c
	return c, nil
}

// locked calls fn with the chain under the chain's lock.
func (s *Store) locked(ctx context.Context, fn func(*chain) error) error {
	lock, err := writer.LockWait(ctx, s.dir, lockName, writer.OwnerOf(os.Getpid(), "checkpoint"))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }() // what was written is durable, whatever it returns
	c, err := s.load()
	if err != nil {
		return err
	}
	return fn(c)
}

// append adds lines to the chain, durably. The caller has the lock, and read c under it.
//
// If this Store wrote the file last and it has not changed since, append appends to it, with
// one write and one sync. Otherwise it replaces the file: lines that another process appended
// and could not sync may not be on the disk even if a later sync succeeds, and a line cannot
// be appended behind a torn one.
func (s *Store) append(c *chain, add []byte) error {
	const op = "append to checkpoints"
	path := filepath.Join(s.dir.Name(), s.chainFile())
	begin := c.dead()
	if c.whole-begin+int64(len(add)) > maxChain {
		return &writer.Error{Op: op, Path: path, Class: writer.ClassInvalid, Err: fmt.Errorf("it would have more than %d bytes", maxChain)}
	}
	mine := s.mine
	s.mine = nil // until the append has succeeded
	if mine != nil && c.info != nil && writer.SameFile(mine, c.info) && mine.Size() == c.info.Size() && c.whole == c.info.Size() && c.whole+int64(len(add)) <= maxChain {
		info, err := s.extend(c.whole, add)
		if err == nil {
			s.mine = info
			return nil
		}
		// Lines that could not be synced must not stay, or a reader would believe them.
		outcome := writer.NotDurable
		if s.replace(0, c.whole, nil) == nil {
			outcome = writer.NotCommitted
		}
		return writer.NewError(op, path, outcome, err)
	}
	if err := s.replace(begin, c.whole, add); err != nil {
		return err
	}
	_ = writer.RemoveTemps(s.dir, ".", func(of string) bool { return of == s.chainFile() || of == s.trackerFile() })
	info, err := s.dir.Lstat(s.chainFile())
	if err == nil && info.Size() == c.whole-begin+int64(len(add)) {
		s.mine = info
	}
	return nil
}

// extend appends to the file, and syncs it.
func (s *Store) extend(end int64, add []byte) (info fs.FileInfo, err error) {
	f, info, err := writer.OpenRegular(s.dir, "append to checkpoints", s.chainFile(), os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	if info.Size() != end {
		err = errors.New("it changed under the lock")
	}
	if err == nil {
		var n int
		if n, err = f.WriteAt(add, end); err == nil && n < len(add) {
			err = io.ErrShortWrite
		}
	}
	if err == nil {
		err = f.Datasync()
	}
	if err == nil {
		info, err = f.Stat()
	}
	return info, errors.Join(err, f.Close())
}

// replace replaces the file by its bytes from begin to end and add, durably.
func (s *Store) replace(begin, end int64, add []byte) error {
	var data []byte
	if end > 0 {
		var err error
		if data, err = writer.ReadText(s.dir, s.chainFile(), maxChain); err != nil {
			return err
		}
		if int64(len(data)) < end {
			return writer.NewError("append to checkpoints", filepath.Join(s.dir.Name(), s.chainFile()), writer.NotCommitted, io.ErrUnexpectedEOF)
		}
	}
	return writer.ReplaceFile(s.dir, s.chainFile(), append(data[begin:end:end], add...), filePerm)
}
