package bundle_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crypt"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A forger makes the tar of a bundle as the standard library would: everything in it fits,
// but for what a test puts there.
type forger struct {
	t        testing.TB
	out      bytes.Buffer
	manifest bytes.Buffer
	entries  int
	bytes    int64
}

var mtime = time.Unix(header.At.Unix(), 0)

// forge returns the tar of a bundle that has the entries of middle between its header and
// its manifest.
func forge(t testing.TB, h bundle.Header, middle func(f *forger)) []byte {
	f := &forger{t: t}
	f.header(h)
	middle(f)
	f.end()
	return f.out.Bytes()
}

func (f *forger) header(h bundle.Header) {
	text, err := envelope.Format{Key: "bundle", Version: 1, Max: 64 << 20}.Encode(h)
	require.NoError(f.t, err)
	f.file("lopen-bundle.json", string(text))
}

func (f *forger) end() {
	f.totals(f.entries, f.bytes)
	f.raw(tar.Header{Name: "manifest.jsonl"}, f.manifest.String())
	f.out.Write(make([]byte, 1024))
}

func (f *forger) totals(entries int, bytes int64) {
	last, err := envelope.Format{Key: "manifest", Version: 1, Max: 512}.Encode(struct {
		Entries int   `json:"entries"`
		Bytes   int64 `json:"bytes"`
	}{entries, bytes})
	require.NoError(f.t, err)
	f.manifest.Write(last)
}

// file adds an entry with its line in the manifest.
func (f *forger) file(name, text string) { f.entry(tar.Header{Name: name}, text) }

// entry is file with any block.
func (f *forger) entry(h tar.Header, text string) {
	f.raw(h, text)
	f.line(h.Name, text)
}

func (f *forger) line(name, text string) {
	sum := sha256.Sum256([]byte(text))
	l, err := strictjson.Marshal(struct {
		Name   string `json:"name"`
		Size   int    `json:"size"`
		SHA256 string `json:"sha256"`
	}{name, len(text), hex.EncodeToString(sum[:])})
	require.NoError(f.t, err)
	f.manifest.Write(append(l, '\n'))
	f.entries, f.bytes = f.entries+1, f.bytes+int64(len(text))
}

// raw adds an entry without a line.
func (f *forger) raw(h tar.Header, text string) {
	if h.Size == 0 {
		h.Size = int64(len(text))
	}
	if h.ModTime.IsZero() {
		h.ModTime = mtime
	}
	if h.Mode == 0 {
		h.Mode = 0o600
	}
	var out bytes.Buffer
	require.NoError(f.t, tar.NewWriter(&out).WriteHeader(&h))
	f.out.Write(out.Bytes())
	f.content(text)
}

func (f *forger) content(text string) {
	f.out.WriteString(text)
	f.out.Write(make([]byte, -len(text)&511))
}

// patch changes the block of the last entry, which has one block of content.
func (f *forger) patch(change func(b []byte)) {
	b := f.out.Bytes()[f.out.Len()-1024:][:512]
	change(b)
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

// special adds an entry of a type, without a line in the manifest.
func (f *forger) special(kind byte, text string) {
	f.raw(tar.Header{Name: "special"}, text)
	if text == "" {
		f.out.Write(make([]byte, 512)) // for patch
		defer func() { f.out.Truncate(f.out.Len() - 512) }()
	}
	f.patch(func(b []byte) { b[156] = kind })
}

// object is an object as it stands in a pack.
func object(hash [32]byte, size int, text string) string {
	return string(binary.BigEndian.AppendUint64(hash[:], uint64(size))) + text
}

// refused are the classes of the errors for bytes that no Writer wrote.
var refused = []writer.Class{writer.ClassCorrupt, writer.ClassInvalid, writer.ClassFutureVersion}

func requireRefused(t testing.TB, err error, about ...any) {
	t.Helper()
	require.Error(t, err, about...)
	require.Contains(t, refused, writer.ClassOf(err), fmt.Sprint(err, about))
}

func TestForgedAsWritten(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 70_000)
	long := "sessions/" + strings.Repeat("a", 90) + "/inherited/1/" + strings.Repeat("b", 90)
	tarred := forge(t, header, func(f *forger) {
		f.file("sessions/a/b", "content")
		f.file(long, "long")
		f.file(fmt.Sprintf("objects/%x", sha256.Sum256([]byte(large))), large)
		f.file("objects/1.pack", object(sha256.Sum256([]byte("o")), 1, "o")+object(sha256.Sum256(nil), 0, ""))
	})
	_, things, err := read(bytes.NewReader(bundle.Forge(tarred)), nil)
	require.NoError(t, err)
	want := []thing{{"sessions/a/b", "content"}, {long, "long"}, {"", large}, {"", "o"}, {"", ""}}
	require.Equal(t, want, things)

	// And those are the bytes that a Writer makes of the same.
	z, err := zstd.NewReader(bytes.NewReader(write(t, header, nil, want...)))
	require.NoError(t, err)
	defer z.Close()
	written, err := io.ReadAll(z)
	require.NoError(t, err)
	require.True(t, bytes.Equal(tarred, written))
}

// Each of these is a bundle in which everything fits but for one thing.
func TestHostileEntries(t *testing.T) {
	t.Parallel()
	const plain = "an entry's name"
	const strange = "not written as lopen writes it"
	large := strings.Repeat("x", 70_000)
	for _, c := range []struct {
		name, want string
		middle     func(f *forger)
	}{
		{"the way up", plain, func(f *forger) { f.file("sessions/../../../etc/passwd", "x") }},
		{"the way up alone", plain, func(f *forger) { f.file("..", "x") }},
		{"absolute", plain, func(f *forger) { f.file("/etc/passwd", "x") }},
		{"this folder", plain, func(f *forger) { f.file("./a", "x") }},
		{"hidden", plain, func(f *forger) { f.file("sessions/.git/config", "x") }},
		{"of Windows", plain, func(f *forger) { f.file(`c:\a`, "x") }},
		{"a stream of Windows", plain, func(f *forger) { f.file("a:b", "x") }},
		{"a dot at the end", plain, func(f *forger) { f.file("sessions/a.", "x") }},
		{"an empty part", plain, func(f *forger) { f.file("a//b", "x") }},
		{"upper case", plain, func(f *forger) { f.file("sessions/A", "x") }},
		{"Unicode", "", func(f *forger) { f.entry(tar.Header{Name: "sessions/é", Format: tar.FormatGNU}, "x") }},
		{"Unicode by PAX", plain, func(f *forger) { f.entry(tar.Header{Name: "sessions/é", Format: tar.FormatPAX}, "x") }},
		{"a control sequence", plain, func(f *forger) { f.file("a\x1b[2J", "x") }},
		{"a line feed", plain, func(f *forger) { f.file("a\nb", "x") }},
		{"deep", plain, func(f *forger) { f.file(strings.Repeat("a/", 8)+"a", "x") }},
		{"no name", plain, func(f *forger) { f.entry(tar.Header{Typeflag: tar.TypeReg}, "x") }},
		{"a symlink", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, "") }},
		{"a hard link", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "b"}, "") }},
		{"a device", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, "") }},
		{"a block device", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Typeflag: tar.TypeBlock}, "") }},
		{"a FIFO", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Typeflag: tar.TypeFifo}, "") }},
		{"a contiguous file", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Typeflag: tar.TypeCont}, "x") }},
		{"a folder", "", func(f *forger) { f.entry(tar.Header{Name: "a/", Typeflag: tar.TypeDir}, "") }},
		{"setuid", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Mode: 0o4755}, "x") }},
		{"another mode", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Mode: 0o666}, "x") }},
		{"an owner", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Uid: 1000}, "x") }},
		{"an owner's name", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Uname: "root"}, "x") }},
		{"another time", "another time", func(f *forger) { f.entry(tar.Header{Name: "a", ModTime: mtime.Add(time.Second)}, "x") }},
		{"PAX: a comment", plain, func(f *forger) {
			f.entry(tar.Header{Name: "a", PAXRecords: map[string]string{"comment": "x"}, Format: tar.FormatPAX}, "x")
		}},
		{"PAX: a name", strange, func(f *forger) { f.special('x', "13 path=../a\n"); f.file("a", "x") }},
		{"PAX: a name for all entries", strange, func(f *forger) { f.special('g', "13 path=../a\n"); f.file("a", "x") }},
		{"PAX: a size", strange, func(f *forger) { f.special('x', "11 size=600\n"); f.file("a", "x") }},
		{"PAX: sparse", strange, func(f *forger) {
			f.special('x', "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n29 GNU.sparse.realsize=1048576\n")
			f.file("a", "1\n0\n1\nx")
		}},
		{"GNU: sparse", strange, func(f *forger) { f.special('S', "x"); f.line("special", "x") }},
		{"GNU: a long name", strange, func(f *forger) { f.special('L', "../../a\x00"); f.file("a", "x") }},
		{"GNU: a long link", strange, func(f *forger) { f.special('K', "../../a\x00"); f.file("a", "x") }},
		{"GNU: a volume", strange, func(f *forger) { f.special('V', ""); f.line("special", "") }},
		{"an unknown type", strange, func(f *forger) { f.special('Z', "x"); f.line("special", "x") }},
		{"the old type of a file", strange, func(f *forger) { f.special(0, "x"); f.line("special", "x") }},
		{"bytes behind a name", strange, func(f *forger) {
			f.file("a", "x")
			f.patch(func(b []byte) { b[50] = 'x' })
		}},
		{"bytes behind the fields", strange, func(f *forger) {
			f.file("a", "x")
			f.patch(func(b []byte) { b[505] = 'x' })
		}},
		{"of GNU, where it needs not", strange, func(f *forger) { f.entry(tar.Header{Name: "a", Format: tar.FormatGNU}, "x") }},
		{"another checksum", strange, func(f *forger) {
			f.file("a", "x")
			f.out.Bytes()[f.out.Len()-1024+148]++
		}},
		{"something behind the content", "something between", func(f *forger) {
			f.file("a", "x")
			f.out.Bytes()[f.out.Len()-1] = 1
		}},
		{"a size beyond the end", "ends too early", func(f *forger) { f.raw(tar.Header{Name: "a", Size: 4 << 20}, "x") }},
		{"a size beyond 8 GiB", "more bytes than its header", func(f *forger) {
			f.raw(tar.Header{Name: "a"}, "x")
			f.patch(func(b []byte) { copy(b[124:136], "\x80\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00") })
		}},
		{"a size in binary, where it needs not", strange, func(f *forger) {
			f.file("a", "x")
			f.patch(func(b []byte) { copy(b[124:136], "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01") })
		}},
		{"a negative size in binary", strange, func(f *forger) {
			f.file("a", "x")
			f.patch(func(b []byte) { copy(b[124:136], "\x80\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff") })
		}},
		{"a negative size", strange, func(f *forger) {
			f.file("a", "x")
			f.patch(func(b []byte) { copy(b[124:136], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") })
		}},
		{"twice", "there twice", func(f *forger) { f.file("a", "x"); f.file("b", "y"); f.file("a", "x") }},
		{"a folder below a file", "a file and a folder", func(f *forger) { f.file("a", "x"); f.file("a/b/c", "x") }},
		{"a file above a folder", "there twice", func(f *forger) { f.file("a/b/c", "x"); f.file("a/b", "x") }},
		{"a second header", "there twice", func(f *forger) { f.header(header) }},
		{"a second manifest", "", func(f *forger) { f.file("manifest.jsonl", "x") }},
		{"an object with another content", "another hash", func(f *forger) { f.file(fmt.Sprintf("objects/%x", sha256.Sum256([]byte("y"))), large) }},
		{"an object without a hash", "no object", func(f *forger) { f.file("objects/abc", large) }},
		{"an object of zeros", "another hash", func(f *forger) { f.file(fmt.Sprintf("objects/%064d", 0), large) }},
		{"a small object alone", "no object", func(f *forger) { f.file(fmt.Sprintf("objects/%x", sha256.Sum256([]byte("x"))), "x") }},
		{"a folder of objects", "no object", func(f *forger) { f.file("objects/ab/cd", large) }},
		{"a pack with another content", "another hash", func(f *forger) { f.file("objects/1.pack", object(sha256.Sum256([]byte("x")), 1, "y")) }},
		{"a pack with an object of zeros", "another hash", func(f *forger) { f.file("objects/1.pack", object([32]byte{}, 1, "y")) }},
		{"a pack that is not the first", "not pack 1", func(f *forger) { f.file("objects/2.pack", object(sha256.Sum256([]byte("x")), 1, "x")) }},
		{"an empty pack", "within an object", func(f *forger) { f.file("objects/1.pack", "") }},
		{"a pack that ends in a head", "within an object", func(f *forger) { f.file("objects/1.pack", "x") }},
		{"a pack that ends in an object", "bytes", func(f *forger) { f.file("objects/1.pack", object(sha256.Sum256([]byte("x")), 2, "x")) }},
		{"a pack with an object beyond all", "bytes", func(f *forger) { f.file("objects/1.pack", object(sha256.Sum256([]byte("x")), -1, "x")) }},
		{"a pack with a large object", "bytes", func(f *forger) { f.file("objects/1.pack", object(sha256.Sum256([]byte(large)), len(large), large)) }},
		{"a large pack", "not pack 1 of at most", func(f *forger) {
			f.file("objects/1.pack", strings.Repeat(object(sha256.Sum256([]byte(large[:60_000])), 60_000, large[:60_000]), 140))
		}},
		{"more than its header says", "more bytes than its header", func(f *forger) { f.raw(tar.Header{Name: "a", Size: header.Bytes + 1}, "") }},
		{"more of objects than its header says", "more bytes than its header", func(f *forger) {
			one := object(sha256.Sum256([]byte(large[:60_000])), 60_000, large[:60_000])
			for i := range 10 {
				f.file(fmt.Sprintf("objects/%d.pack", i+1), strings.Repeat(one, 130))
			}
		}},
		{"the manifest lacks an entry", "manifest", func(f *forger) { f.raw(tar.Header{Name: "a"}, "x") }},
		{"the manifest has one more", "manifest", func(f *forger) { f.line("a", "x") }},
		{"the manifest has another hash", "manifest", func(f *forger) { f.raw(tar.Header{Name: "a"}, "x"); f.line("a", "y") }},
		{"the manifest has another size", "manifest", func(f *forger) { f.raw(tar.Header{Name: "a"}, "x"); f.line("a", "") }},
		{"the manifest has another name", "manifest", func(f *forger) { f.raw(tar.Header{Name: "a"}, "x"); f.line("b", "x") }},
		{"the manifest has another order", "manifest", func(f *forger) {
			f.raw(tar.Header{Name: "a"}, "x")
			f.raw(tar.Header{Name: "b"}, "x")
			f.line("b", "x")
			f.line("a", "x")
		}},
		{"the manifest goes on", "more in its manifest", func(f *forger) { f.totals(1, f.bytes); f.manifest.WriteString("\n") }},
		{"the manifest counts others", "last line", func(f *forger) { f.entries++ }},
		{"the manifest counts other bytes", "last line", func(f *forger) { f.bytes++ }},
		{"a line without end in the manifest", "malformed", func(f *forger) { f.manifest.WriteString(strings.Repeat("x", 100_000)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(bytes.NewReader(bundle.Forge(forge(t, header, c.middle))), nil)
			requireRefused(t, err)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	future := strings.Replace(string(forge(t, header, func(*forger) {})), `{"bundle":1,`, `{"bundle":2,`, 1)
	other := header
	other.At = other.At.Add(time.Hour)
	for name, c := range map[string]struct {
		tar   []byte
		want  string
		class writer.Class
	}{
		"nothing":              {nil, "ends too early", writer.ClassCorrupt},
		"no header":            {(&forger{t: t}).only("a", "x"), "does not begin with the header", writer.ClassCorrupt},
		"an empty header":      {(&forger{t: t}).only("lopen-bundle.json", ""), "header", writer.ClassCorrupt},
		"another seal":         {(&forger{t: t}).only("lopen-bundle.json", `{"bundle":1,"checksum":"crc32c:00000000"}`+"\n"), "checksum", writer.ClassCorrupt},
		"a newer version":      {[]byte(future), "update lopen", writer.ClassFutureVersion},
		"another time":         {forge(t, other, func(*forger) {}), "another time", writer.ClassCorrupt},
		"a large header":       {(&forger{t: t}).only("lopen-bundle.json", strings.Repeat(" ", 17<<20)), "does not begin with the header", writer.ClassCorrupt},
		"no end":               {bytes.TrimRight(forge(t, header, func(*forger) {}), "\x00"), "ends too early", writer.ClassCorrupt},
		"one block at the end": {cut(forge(t, header, func(*forger) {}), 512), "ends too early", writer.ClassCorrupt},
		"no manifest":          {append((&forger{t: t}).only("lopen-bundle.json", ""), make([]byte, 1024)...), "header", writer.ClassCorrupt},
		"a third block":        {append(forge(t, header, func(*forger) {}), make([]byte, 512)...), "behind its end", writer.ClassCorrupt},
		"another tar behind":   {append(forge(t, header, func(*forger) {}), forge(t, header, func(*forger) {})...), "behind its end", writer.ClassCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(bytes.NewReader(bundle.Forge(c.tar)), nil)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.class, writer.ClassOf(err))
		})
	}
	_, _, err := read(bytes.NewReader(bundle.Forge(func() []byte {
		f := &forger{t: t}
		f.header(header)
		f.out.Write(make([]byte, 1024))
		return f.out.Bytes()
	}())), nil)
	require.ErrorContains(t, err, "without a manifest")
}

func (f *forger) only(name, text string) []byte {
	f.file(name, text)
	return f.out.Bytes()
}

func cut(b []byte, n int) []byte { return b[:len(b)-n] }

func TestNoBundle(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "PK\x03\x04", strings.Repeat("text ", 1000)} {
		_, _, err := read(strings.NewReader(text), nil)
		require.ErrorIs(t, err, writer.ErrInvalid)
		require.ErrorContains(t, err, "no bundle")
	}
}

// sparse is how far apart the bytes are at which a file is cut or changed: under the race
// detector each encoder and decoder takes milliseconds.
func sparse() int {
	if testing.Short() {
		return 5
	}
	return 1
}

// tiny is a small bundle, plain and encrypted.
func tiny(t testing.TB) (key *crypt.Key, files [][]byte) {
	key, _, err := crypt.NewKey()
	require.NoError(t, err)
	h := bundle.Header{At: header.At, Bytes: 100}
	things := []thing{{"a", "some text"}, {"", "object"}, {"", ""}}
	return key, [][]byte{write(t, h, nil, things...), write(t, h, key, things...)}
}

func TestEveryFlipIsNoticed(t *testing.T) {
	t.Parallel()
	key, files := tiny(t)
	for _, file := range files {
		_, _, err := read(bytes.NewReader(file), key)
		require.NoError(t, err)
		for i := 0; i < len(file); i += sparse() {
			bad := bytes.Clone(file)
			bad[i] ^= 1 << (i % 8)
			_, _, err := read(bytes.NewReader(bad), key)
			requireRefused(t, err, "byte ", i)
		}
	}
}

func TestEveryCutIsNoticed(t *testing.T) {
	t.Parallel()
	key, files := tiny(t)
	for _, file := range files {
		for i := 0; i < len(file); i += sparse() {
			_, _, err := read(bytes.NewReader(file[:i]), key)
			requireRefused(t, err, "byte ", i)
		}
	}
}

func TestNothingFollows(t *testing.T) {
	t.Parallel()
	key, files := tiny(t)
	for _, file := range files {
		for _, more := range [][]byte{{0}, make([]byte, 512), file, []byte("\x50\x2a\x4d\x18\x00\x00\x00\x00"), zstdOf(t, nil), bundle.Sealed(nil), file[len(file)-bundle.SealSize:]} {
			_, _, err := read(bytes.NewReader(append(bytes.Clone(file), more...)), key)
			requireRefused(t, err, more)
		}
	}
	// Behind the end of the compressed tar, within the seal.
	inner := cut(files[0], bundle.SealSize)
	_, _, err := read(bytes.NewReader(bundle.Sealed(append(bytes.Clone(inner), zstdOf(t, []byte("x"))...))), nil)
	requireRefused(t, err)
	require.ErrorContains(t, err, "behind its end")
}

func zstdOf(t testing.TB, text []byte, opts ...zstd.EOption) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, opts...)
	require.NoError(t, err)
	defer z.Close()
	return z.EncodeAll(text, nil)
}
