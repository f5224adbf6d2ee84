package crypt_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crypt"
)

const passphrase = "correct horse battery staple"

// keys returns texts that encrypt, each with one that decrypts, by their kind.
func keys(t testing.TB) map[string][2]string {
	t.Helper()
	_, own, err := crypt.NewKey()
	require.NoError(t, err)
	native, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	hybrid, err := age.GenerateHybridIdentity()
	require.NoError(t, err)
	private := func(key any, public any) [2]string {
		block, err := ssh.MarshalPrivateKey(key, "")
		require.NoError(t, err)
		pub, err := ssh.NewPublicKey(public)
		require.NoError(t, err)
		return [2]string{string(ssh.MarshalAuthorizedKey(pub)), string(pem.EncodeToMemory(block))}
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return map[string][2]string{
		"own":        {string(own), string(own)},
		"x25519":     {native.Recipient().String() + "\n", native.String() + "\n"},
		"hybrid":     {hybrid.Recipient().String(), "# comment\r\n\r\n" + hybrid.String() + "\r\n"},
		"identity":   {native.String(), native.String()},
		"ssh":        private(ed, ed.Public()),
		"ssh-rsa":    private(r, r.Public()),
		"two":        {native.Recipient().String() + "\n" + private(ed, ed.Public())[0], native.String()},
		"mixed":      {native.String() + "\n" + private(ed, ed.Public())[0], native.String()},
		"passphrase": {passphrase, passphrase + "\n"},
	}
}

func parse(t testing.TB, text string) *crypt.Key {
	t.Helper()
	k, err := crypt.ParseKey([]byte(text))
	require.NoError(t, err)
	if strings.HasPrefix(text, passphrase) {
		crypt.Weaken(k)
	}
	return k
}

func encrypt(t testing.TB, k *crypt.Key, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := k.Encrypt(&out)
	require.NoError(t, err)
	_, err = w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func decrypt(k *crypt.Key, sealed []byte) ([]byte, error) {
	r, err := k.Decrypt(bytes.NewReader(sealed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("some text "), 20_000)
	for kind, pair := range keys(t) {
		sealed := encrypt(t, parse(t, pair[0]), text)
		require.True(t, crypt.Encrypted(sealed[:crypt.HeadSize]), kind)
		k := parse(t, pair[1])
		require.True(t, k.CanDecrypt(), kind)
		got, err := decrypt(k, sealed)
		require.NoError(t, err, kind)
		require.Equal(t, text, got, kind)

		at, size, err := k.DecryptAt(bytes.NewReader(sealed), int64(len(sealed)))
		require.NoError(t, err, kind)
		require.EqualValues(t, len(text), size)
		part := make([]byte, 1000)
		_, err = at.ReadAt(part, 65_000)
		require.NoError(t, err)
		require.Equal(t, text[65_000:66_000], part)
		n, err := at.ReadAt(part, size-10)
		require.Equal(t, 10, n)
		require.ErrorIs(t, err, io.EOF)
	}
}

func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()
	all := keys(t)
	own := strings.TrimSpace(all["own"][0])
	for text, want := range map[string]string{
		"":                         "it is empty",
		"\n# comment\n\n":          "it is empty",
		"two\nlines":               "several lines",
		own + "\nx":                "several lines",
		"x\n" + own:                "several lines",
		own[:40]:                   "line 1: the private key is malformed",
		strings.ToLower(own) + "x": "line 1: the private key is malformed",
		"\nage1qqq":                "line 2: the public key is malformed",
		"AGE1QQQ":                  "the public key is malformed",
		"age1yubikey1qxxx":         "plugins are not supported",
		"AGE-PLUGIN-YUBIKEY-1XXX":  "plugins are not supported",
		"ssh-dss AAAA":             "neither ssh-ed25519 nor ssh-rsa",
		"age-encryption.org/v1\n":  "encrypted itself",
		armor.Header + "\nx":       "encrypted itself",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nxxx\n": "private key of SSH is malformed",
		"a\x07b":                     "control characters",
		"caf\xe9":                    "not UTF-8",
		strings.Repeat("x", 65<<10):  "more than 65536 bytes",
		strings.Repeat(own+"\n", 65): "more than 64 keys",
	} {
		_, err := crypt.ParseKey([]byte(text))
		require.ErrorIs(t, err, writer.ErrInvalid, "%.30q", text)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), own[16:30], "an error has a key in it")
	}
}

func TestOtherKeys(t *testing.T) {
	t.Parallel()
	all := keys(t)
	for kind, want := range map[string]string{
		"own":        `the key is another one: it is encrypted to keys of the kind "X25519"`,
		"ssh":        `the key is another one: it is encrypted to keys of the kind "ssh-ed25519"`,
		"passphrase": "the key is another one: it is encrypted with a passphrase",
	} {
		sealed := encrypt(t, parse(t, all[kind][0]), []byte("x"))
		k, _, err := crypt.NewKey()
		require.NoError(t, err)
		_, err = decrypt(k, sealed)
		require.ErrorIs(t, err, writer.ErrInvalid)
		require.ErrorIs(t, err, crypt.ErrKey)
		require.EqualError(t, err, "decrypt what is encrypted: "+want)
		_, _, err = k.DecryptAt(bytes.NewReader(sealed), int64(len(sealed)))
		require.ErrorIs(t, err, writer.ErrInvalid)
	}
	sealed := encrypt(t, parse(t, passphrase), nil)
	_, err := decrypt(parse(t, passphrase+"r"), sealed)
	require.EqualError(t, err, "decrypt what is encrypted: the passphrase is another one")
	_, err = decrypt(parse(t, all["x25519"][0]), encrypt(t, parse(t, all["x25519"][0]), nil))
	require.ErrorContains(t, err, "the key is public and only encrypts")
	require.False(t, parse(t, all["x25519"][0]).CanDecrypt())
}

// What age -a wrote is read as well. None of it is believed.
func TestArmor(t *testing.T) {
	t.Parallel()
	k, _, err := crypt.NewKey()
	require.NoError(t, err)
	text := bytes.Repeat([]byte("some text "), 1000)
	var out bytes.Buffer
	w := armor.NewWriter(&out)
	_, err = w.Write(encrypt(t, k, text))
	require.NoError(t, errors.Join(err, w.Close()))
	sealed := out.Bytes()
	require.True(t, crypt.Encrypted(sealed[:crypt.HeadSize]))
	for _, whole := range [][]byte{sealed, append(bytes.ReplaceAll(sealed, []byte("\n"), []byte("\r\n")), "\n\n"...)} {
		got, err := decrypt(k, whole)
		require.NoError(t, err)
		require.Equal(t, text, got)
	}
	for i := len(armor.Header); i < len(sealed)-1; i += 197 {
		for _, bad := range [][]byte{sealed[:i], append(bytes.Clone(sealed[:i]), sealed[i+1:]...), append(bytes.Clone(sealed), sealed[:i]...)} {
			_, err := decrypt(k, bad)
			require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err), "%d: %v", i, err)
		}
	}
	bomb := io.LimitReader(readerFunc(func(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("A"), len(p))), nil }), 1<<30)
	_, err = k.Decrypt(io.MultiReader(strings.NewReader(armor.Header+"\n"), bomb))
	require.ErrorContains(t, err, "more than 65536 bytes")
	require.Greater(t, bomb.(*io.LimitedReader).N, int64(1<<29), "it is not read to its end")
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A file says how much a passphrase costs: gigabytes, if it were believed.
func TestWorkFactorIsBounded(t *testing.T) {
	t.Parallel()
	sealed := encrypt(t, parse(t, passphrase), nil)
	for _, factor := range []string{" 19\n", " 22\n", " 30\n"} {
		_, err := decrypt(parse(t, passphrase), bytes.Replace(sealed, []byte(" 1\n"), []byte(factor), 1))
		require.ErrorContains(t, err, "work factor too large")
		require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err))
	}
}

func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	k, _, err := crypt.NewKey()
	require.NoError(t, err)
	text := bytes.Repeat([]byte("x"), 70_000)
	sealed := encrypt(t, k, text)
	bad := func(b []byte, about int) {
		_, err := decrypt(k, b)
		require.Error(t, err, about)
		require.False(t, errors.Is(err, io.EOF), about)
		require.Contains(t, []writer.Class{writer.ClassCorrupt, writer.ClassInvalid}, writer.ClassOf(err), about)
		at, n, err := k.DecryptAt(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			_, err = io.ReadFull(io.NewSectionReader(at, 0, n), make([]byte, n))
		}
		require.Error(t, err, about)
		require.Contains(t, []writer.Class{writer.ClassCorrupt, writer.ClassInvalid}, writer.ClassOf(err), about)
	}
	for i := 0; i < len(sealed); i += 1 + i/250*97 {
		flipped := bytes.Clone(sealed)
		flipped[i] ^= 1 << (i % 8)
		bad(flipped, i)
		bad(sealed[:i], i)
	}
	bad(sealed[:len(sealed)-1], -1)
	bad(append(bytes.Clone(sealed), 0), -2)
	bad(append(bytes.Clone(sealed), sealed...), -3)
}

// An error of reading is no damage, and keeps its cause; io.ErrUnexpectedEOF, which age takes
// for an end, is one as well.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	k, _, err := crypt.NewKey()
	require.NoError(t, err)
	sealed := encrypt(t, k, bytes.Repeat([]byte("x"), 200_000))
	for _, cause := range []error{syscall.EIO, io.ErrUnexpectedEOF} {
		for _, n := range []int{0, 10, 100, 70_000, len(sealed) - 1, len(sealed)} {
			r, err := k.Decrypt(io.MultiReader(bytes.NewReader(sealed[:n]), iotest.ErrReader(cause)))
			if err == nil {
				_, err = io.ReadAll(r)
			}
			require.ErrorIs(t, err, cause, n)
			at, size, err := k.DecryptAt(failingAt{sealed, n, cause}, int64(len(sealed)))
			if err == nil {
				_, err = io.ReadFull(io.NewSectionReader(at, 0, size), make([]byte, size))
			}
			if n < len(sealed) {
				require.ErrorIs(t, err, cause, n)
			}
		}
	}
	_, err = k.Encrypt(writerFunc(func([]byte) (int, error) { return 0, syscall.ENOSPC }))
	require.Equal(t, writer.ClassNoSpace, writer.ClassOf(err))
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// failingAt fails from n on.
type failingAt struct {
	data []byte
	n    int
	err  error
}

func (f failingAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > int64(f.n) {
		return 0, f.err
	}
	return bytes.NewReader(f.data).ReadAt(p, off)
}

// The samples were made by the age command.
func TestSamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/x25519.key")
	require.NoError(t, err)
	for sample, key := range map[string]string{"x25519.age": string(text), "passphrase.age": passphrase} {
		sealed, err := os.ReadFile("testdata/" + sample)
		require.NoError(t, err)
		got, err := decrypt(parse(t, key), sealed)
		require.NoError(t, err)
		require.Equal(t, "what the age command encrypted\n", string(got))
	}
}

// A file's name stands in its errors.
func TestErrorsNameTheFile(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/x25519.age")
	require.NoError(t, err)
	defer f.Close()
	k, _, err := crypt.NewKey()
	require.NoError(t, err)
	_, err = k.Decrypt(f)
	require.ErrorContains(t, err, "decrypt testdata/x25519.age: the key is another one")
}

func ExampleKey() {
	key, text, err := crypt.NewKey() // or ParseKey of what a user gives
	if err != nil {
		panic(err)
	}
	var file bytes.Buffer
	w, err := key.Encrypt(&file)
	if err != nil {
		panic(err)
	}
	fmt.Fprint(w, "a secret")
	if err := w.Close(); err != nil {
		panic(err)
	}
	again, err := crypt.ParseKey(text)
	if err != nil {
		panic(err)
	}
	r, err := again.Decrypt(&file)
	if err != nil {
		panic(err)
	}
	content, err := io.ReadAll(r)
	fmt.Println(string(content), err)
	// Output: a secret <nil>
}

func FuzzParseKey(f *testing.F) {
	f.Add([]byte("age1phsrxh5wjhy9xa8rqyvdt2nzs0rksgsqazcnzkvehpa78v69w9uqccjgex\n# x\n"))
	f.Add([]byte("AGE-SECRET-KEY-1JH8D2JSF9WSPFHXX76HGC76TTLVFUJWNE6UDK5RFQG94UWZQD79STGCCA8"))
	f.Add([]byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA x"))
	f.Add([]byte("-----BEGIN OPENSSH PRIVATE KEY-----\n"))
	f.Add([]byte("two\nlines"))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := crypt.ParseKey(text)
		if err != nil {
			require.ErrorIs(t, err, writer.ErrInvalid)
			return
		}
		again, err := crypt.ParseKey(append(text, '\n'))
		require.NoError(t, err)
		require.Equal(t, k.CanDecrypt(), again.CanDecrypt())
	})
}
