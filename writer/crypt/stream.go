package crypt

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/lopen-dev/lopen/writer"
)

const intro = "age-encryption.org/v1\n"

// HeadSize is how many bytes of a file Encrypted looks at.
const HeadSize = len(armor.Header)

// Encrypted reports whether a file that begins with head is encrypted, also as text (age -a).
func Encrypted(head []byte) bool { return bytes.HasPrefix(head, []byte(intro)) || armored(head) }

func armored(head []byte) bool { return bytes.HasPrefix(head, []byte(armor.Header)) }

// ErrKey is why a file cannot be decrypted with a key: it is encrypted to another one.
var ErrKey = errors.New("the key is another one")

// A keyError is ErrKey with a text of its own.
type keyError struct{ error }

func (keyError) Is(target error) bool { return target == ErrKey }

// Encrypt returns a writer that encrypts to w. Close writes the last piece, without which
// nobody can read the rest to its end; it does not close w.
func (k *Key) Encrypt(w io.Writer) (io.WriteCloser, error) {
	out, err := age.Encrypt(w, k.recipients...)
	if err != nil {
		return nil, writer.NewError("encrypt", nameOf(w), writer.NotCommitted, err)
	}
	return out, nil
}

// Decrypt returns a reader of what is encrypted in r, also as text. The reader's error has class
// corrupt when the bytes are not those that were written, cut off and followed by others included.
// Decrypt fails with class invalid and ErrKey when the key is another one.
func (k *Key) Decrypt(r io.Reader) (io.Reader, error) {
	src := &source{r: r}
	in := bufio.NewReader(src)
	var from io.Reader = in
	if head, _ := in.Peek(HeadSize); armored(head) { // the next read has its error
		from = armor.NewReader(&lines{r: in})
	}
	plain, err := age.Decrypt(from, k.identities...)
	if src.err != nil {
		err = readError{src.err}
	}
	if err != nil {
		return nil, k.failed(r, err)
	}
	return &decrypted{plain, src}, nil
}

// DecryptAt is Decrypt for a file of size bytes that is read anywhere. It returns the size of
// what is encrypted as well. Reads may be concurrent.
func (k *Key) DecryptAt(r io.ReaderAt, size int64) (io.ReaderAt, int64, error) {
	src := sourceAt{r}
	plain, n, err := age.DecryptReaderAt(src, size, k.identities...)
	if err != nil {
		return nil, 0, k.failed(r, err)
	}
	return &decryptedAt{plain, src}, n, nil
}

// failed is the error of a file that cannot be decrypted at all.
func (k *Key) failed(of any, err error) error {
	read, unread := errors.AsType[readError](err)
	other, noMatch := errors.AsType[*age.NoIdentityMatchError](err)
	switch {
	case unread:
		return writer.NewError("decrypt", nameOf(of), writer.NotCommitted, read.error)
	case !k.CanDecrypt():
		err = keyError{errors.New("the key is public and only encrypts; give the private one")}
	case noMatch:
		err = keyError{k.another(other.StanzaTypes)}
	default:
		return damaged(of, err)
	}
	return &writer.Error{Op: "decrypt", Path: nameOf(of), Class: writer.ClassInvalid, Err: err}
}

// another says that the key does not fit a file that is encrypted to keys of these kinds,
// which are words of a foreign file.
func (k *Key) another(types []string) error {
	_, passphrase := k.identities[0].(*age.ScryptIdentity)
	switch asked := slices.Contains(types, "scrypt"); {
	case asked && passphrase:
		return errors.New("the passphrase is another one")
	case asked:
		return fmt.Errorf("%w: it is encrypted with a passphrase", ErrKey)
	}
	types = slices.Compact(slices.Sorted(slices.Values(types)))
	for i, t := range types {
		types[i] = strconv.QuoteToASCII(t[:min(len(t), 20)])
	}
	return fmt.Errorf("%w: it is encrypted to keys of the kind %s", ErrKey, strings.Join(types[:min(len(types), 4)], ", "))
}

// damaged is the error of bytes that are not what was encrypted.
func damaged(of any, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // which must not pass for the end
		err = errors.New("it is cut off")
	}
	return &writer.Error{Op: "decrypt", Path: nameOf(of), Class: writer.ClassCorrupt, Err: err}
}

// nameOf is the name of a file, for messages.
func nameOf(of any) string {
	if f, ok := of.(interface{ Name() string }); ok {
		return f.Name()
	}
	return "what is encrypted"
}

// A source distinguishes an error of reading from that of what was read: age returns some
// for others.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// maxLine bounds a line of an armor, in bytes: package armor would read it as a whole.
const maxLine = 64 << 10

// lines are the bytes of an armor, up to a line that is too long.
type lines struct {
	r io.Reader
	n int // bytes of the line so far
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	l.n += n
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
		l.n = n - i - 1
	}
	if l.n > maxLine {
		return 0, fmt.Errorf("a line of its armor has more than %d bytes", maxLine)
	}
	return n, err
}

type decrypted struct {
	plain io.Reader
	src   *source
}

func (d *decrypted) Name() string { return nameOf(d.src.r) }

func (d *decrypted) Read(p []byte) (int, error) {
	n, err := d.plain.Read(p)
	switch {
	case d.src.err != nil:
		return n, d.src.err
	case err != nil && err != io.EOF:
		return n, damaged(d.src.r, err)
	}
	return n, err
}

// A sourceAt marks the errors of reading.
type sourceAt struct{ r io.ReaderAt }

type readError struct{ error }

func (s sourceAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.r.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = readError{err}
	}
	return n, err
}

type decryptedAt struct {
	plain io.ReaderAt
	src   sourceAt
}

func (d *decryptedAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := d.plain.ReadAt(p, off)
	if read, ok := errors.AsType[readError](err); ok {
		return n, read.error
	}
	if err != nil && err != io.EOF {
		return n, damaged(d.src.r, err)
	}
	return n, err
}
