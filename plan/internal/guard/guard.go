package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/lopen-dev/lopen/writer"
)

// MaxSize bounds what is read, in bytes, and so what is written.
const MaxSize = 64 << 20

// Bounded returns an error for a content that could not be read again.
func Bounded(name string, content []byte) error {
	if len(content) > MaxSize {
		return fmt.Errorf("write %s: it would have %d bytes, more than the %d that are read", name, len(content), MaxSize)
	}
	return nil
}

// rereads bounds how often Edit starts again because the file changed under its
// hands.
const rereads = 5

// ErrChanging says that the file changed again and again while it was to be edited.
var ErrChanging = errors.New("the file keeps changing")

// Edit replaces a file, durably, by what fn makes of it, with the file's
// permission bits. known is what the file is expected to hold, or nil. fn gets nil where there is no file, and what it returns is then a
// new file of mode perm. It is called again when the file changed meanwhile. An
// error of fn is returned as it is, and nothing is written then or when fn returns
// what it got.
//
// The file is compared once more right before it is replaced. An editor that
// saves between that moment and the rename, some hundred microseconds, loses what
// it saved: no portable call replaces a file only if it is still the same, and
// editors take no lock.
func Edit(fsys writer.FS, name string, perm fs.FileMode, known []byte, fn func(src []byte) ([]byte, error)) error {
	for range rereads {
		src, err := Read(fsys, name, known)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		next, err := fn(src)
		if err == nil {
			err = Bounded(name, next)
		}
		if err != nil || bytes.Equal(src, next) && src != nil {
			return err
		}
		if src == nil {
			if err := writer.CreateFile(fsys, name, next, perm); !errors.Is(err, fs.ErrExist) {
				return err
			}
			continue
		}
		replaced, err := replace(fsys, name, src, next)
		if err != nil || replaced {
			return err
		}
	}
	return fmt.Errorf("write %s: %w", name, ErrChanging)
}

// Read returns what a file holds, never nil where there is one: known itself,
// which may be nil, where the file holds that, so that it is in memory once.
func Read(fsys writer.FS, name string, known []byte) ([]byte, error) {
	if known != nil {
		if _, same, err := compare(fsys, name, known); err == nil && same {
			return known, nil
		}
	}
	src, err := writer.ReadFile(fsys, name, MaxSize)
	if err == nil && src == nil {
		src = []byte{}
	}
	return src, err
}

func replace(fsys writer.FS, name string, old, next []byte) (bool, error) {
	mode, same, err := compare(fsys, name, old)
	if err != nil || !same {
		return false, err
	}
	return true, writer.ReplaceFile(fsys, name, next, mode&fs.ModePerm)
}

// compare says whether a file holds old, piece by piece.
func compare(fsys writer.FS, name string, old []byte) (mode fs.FileMode, same bool, err error) {
	f, info, err := writer.OpenRegular(fsys, "read", name, os.O_RDONLY)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() != int64(len(old)) {
		return 0, false, nil
	}
	piece := make([]byte, min(len(old)+1, 256<<10))
	for {
		n, err := f.Read(piece)
		if n > len(old) || !bytes.Equal(piece[:n], old[:n]) {
			return 0, false, nil
		}
		old = old[n:]
		if errors.Is(err, io.EOF) {
			return info.Mode(), len(old) == 0, nil
		}
		if err != nil {
			return 0, false, err
		}
	}
}
