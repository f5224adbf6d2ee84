package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crypt"
)

// maxKeyFile bounds key.age, in bytes.
const maxKeyFile = 1 << 20

// key returns the user's key for the backup in a folder. It can decrypt.
func (o *Options) key(path string) (*crypt.Key, error) {
	invalid := func(text string) error {
		return &writer.Error{Op: "open backup", Path: path, Class: writer.ClassInvalid, Err: errors.New(text)}
	}
	if o.Key == nil {
		return nil, invalid("it is encrypted, and there is no key")
	}
	k, err := o.Key()
	if err == nil && !k.CanDecrypt() {
		err = invalid("a backup reads what is there already: give a private key or a passphrase, not public keys alone")
	}
	return k, err
}

// makeKey makes the key of a new backup. Its file is encrypted to the user's key, and every other
// file to the backup's: a passphrase takes a second for each file that it encrypts.
func (f *Folder) makeKey() error {
	if _, err := f.dir.Lstat(keyFile); !errors.Is(err, fs.ErrNotExist) {
		return f.useKey() // of a creation that was interrupted
	}
	user, err := f.opts.key(f.Path())
	if err != nil {
		return err
	}
	_, text, err := crypt.NewKey()
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	w, err := user.Encrypt(&buf)
	if err == nil {
		_, err = w.Write(text)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return err
	}
	if err := writer.ReplaceFile(f.dir, keyFile, buf.Bytes(), filePerm); err != nil {
		return err
	}
	return f.useKey()
}

// unlockFiles makes the files of an encrypted backup readable.
func (f *Folder) unlockFiles() error {
	switch {
	case f.mark.Encrypted:
		return f.useKey()
	case f.opts.Encrypt:
		return &writer.Error{Op: "open backup", Path: f.Path(), Class: writer.ClassInvalid, Err: errors.New("it is not encrypted, and cannot become it: name another folder")}
	}
	return nil
}

// useKey reads the backup's key.
func (f *Folder) useKey() error {
	data, err := writer.ReadFile(f.dir, keyFile, maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return damaged(fmt.Errorf("%s is missing, and nothing can be read without it: put it back, or name another folder", f.path(keyFile)))
	} else if err != nil {
		return err
	}
	user, err := f.opts.key(f.Path())
	if err != nil {
		return err
	}
	fail := func(err error) error {
		return writer.NewError("open backup", f.path(keyFile), writer.NotCommitted, err)
	}
	r, err := user.Decrypt(bytes.NewReader(data))
	if err != nil {
		return fail(err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxKeyFile))
	if err != nil {
		return fail(err)
	}
	own, err := crypt.ParseKey(text)
	if err != nil {
		return fail(damaged(fmt.Errorf("what it has is no key: %w", err)))
	}
	c := &cipherFS{FS: f.dir, key: own}
	if c.overhead, err = overheadOf(own); err != nil {
		return fail(err)
	}
	sum := sha256.Sum256(text)
	f.files, f.keyID = c, hex.EncodeToString(sum[:])
	return nil
}

// overheadOf returns by how many bytes an encrypted file is longer than its pieces.
func overheadOf(key *crypt.Key) (int64, error) {
	var buf bytes.Buffer
	w, err := key.Encrypt(&buf)
	if err == nil {
		err = w.Close()
	}
	return int64(buf.Len()) - tagSize, err
}

// age encrypts in pieces of 64 KiB, each with a tag, the last one shorter.
const (
	pieceSize = 64 << 10
	tagSize   = 16
)

// A cipherFS encrypts each file that is created, and decrypts each that is read. A file is
// written once, from its beginning to its first sync. Names and locks are as they are.
type cipherFS struct {
	writer.FS
	key      *crypt.Key
	overhead int64
}

// OpenFile opens a file for reading, or creates one.
func (c *cipherFS) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil || path.Base(name) == lockFile {
		return f, err
	}
	if flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL {
		return &sealing{File: f, key: c.key}, nil
	}
	info, err := f.Stat()
	if err == nil && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		err = &writer.Error{Op: "open", Path: name, Class: writer.ClassInvalid, Err: errors.New("an encrypted file is written once")}
	}
	if err == nil && !info.Mode().IsRegular() {
		return f, nil
	}
	o := &opened{File: f, info: info}
	if err == nil {
		o.plain, o.size, err = c.key.DecryptAt(f, info.Size())
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return o, nil
}

// Lstat returns the size of what a file has, as Stat of the open file does.
func (c *cipherFS) Lstat(name string) (fs.FileInfo, error) {
	info, err := c.FS.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || path.Base(name) == lockFile {
		return info, err
	}
	n := info.Size() - c.overhead
	return sized{info, max(0, n-tagSize*((n+pieceSize+tagSize-1)/(pieceSize+tagSize)))}, nil
}

// Sub opens a folder.
func (c *cipherFS) Sub(name string) (writer.FS, error) {
	sub, err := c.FS.Sub(name)
	if err != nil {
		return nil, err
	}
	return &cipherFS{FS: sub, key: c.key, overhead: c.overhead}, nil
}

// sized is the info of a file with another size.
type sized struct {
	fs.FileInfo
	size int64
}

// Size returns the size of what is encrypted.
func (s sized) Size() int64 { return s.size }

// Inner returns the info as it is on the disk, for writer.SameFile.
func (s sized) Inner() fs.FileInfo { return s.FileInfo }

// opened is an encrypted file that is read.
type opened struct {
	writer.File
	info  fs.FileInfo
	plain io.ReaderAt
	size  int64
	at    int64 // of the next Read
}

func (o *opened) ReadAt(p []byte, off int64) (int, error) { return o.plain.ReadAt(p, off) }

func (o *opened) Read(p []byte) (int, error) {
	n, err := o.plain.ReadAt(p, o.at)
	o.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil // the next Read returns it
	}
	return n, err
}

func (o *opened) Stat() (fs.FileInfo, error) { return sized{o.info, o.size}, nil }

// sealing is an encrypted file that is written.
type sealing struct {
	writer.File
	key  *crypt.Key
	w    io.WriteCloser // nil before the first byte
	n    int64          // bytes written
	over bool
	err  error // sticky
}

func (s *sealing) Write(p []byte) (int, error) {
	if s.begin(); s.err == nil && s.over {
		s.err = errors.New("an encrypted file ends with its first sync")
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.n, s.err = s.n+int64(n), err
	return n, err
}

func (s *sealing) begin() {
	if s.w == nil && s.err == nil {
		s.w, s.err = s.key.Encrypt(s.File)
	}
}

// WriteAt appends p. What is left out before off is zeros.
func (s *sealing) WriteAt(p []byte, off int64) (int, error) {
	if off < s.n {
		return 0, errors.New("an encrypted file is written from its beginning to its end")
	}
	var zeros [32 << 10]byte
	for s.n < off {
		if _, err := s.Write(zeros[:min(off-s.n, int64(len(zeros)))]); err != nil {
			return 0, err
		}
	}
	return s.Write(p)
}

// end writes the last piece.
func (s *sealing) end() error {
	if s.begin(); s.err == nil && !s.over {
		s.over = true
		s.err = s.w.Close()
	}
	return s.err
}

func (s *sealing) Sync() error {
	if err := s.end(); err != nil {
		return err
	}
	return s.File.Sync()
}

func (s *sealing) Datasync() error {
	if err := s.end(); err != nil {
		return err
	}
	return s.File.Datasync()
}

// Close ends a file that was not synced as well: ReplaceUnsynced writes such files.
func (s *sealing) Close() error { return errors.Join(s.end(), s.File.Close()) }
