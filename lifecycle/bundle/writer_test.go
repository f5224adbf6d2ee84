package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crypt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func opened(r io.Reader) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(r), nil }
}

// What a Writer is given and does not fit is an error that stays, and the file is no bundle.
func TestWriterRefuses(t *testing.T) {
	t.Parallel()
	large := thing{"", strings.Repeat("x", 70_000)}
	small := thing{"", "x"}
	eio := iotest.ErrReader(syscall.EIO)
	for name, c := range map[string]struct {
		add   func(w *bundle.Writer) error
		want  string
		class writer.Class
	}{
		"a way out":               {func(w *bundle.Writer) error { return w.Add("../x", 0, strings.NewReader("")) }, "an entry's name", writer.ClassInvalid},
		"the header's name":       {func(w *bundle.Writer) error { return w.Add("lopen-bundle.json", 0, strings.NewReader("")) }, "own", writer.ClassInvalid},
		"the manifest's name":     {func(w *bundle.Writer) error { return w.Add("manifest.jsonl", 0, strings.NewReader("")) }, "own", writer.ClassInvalid},
		"an object's name":        {func(w *bundle.Writer) error { return w.Add("objects/x", 0, strings.NewReader("")) }, "own", writer.ClassInvalid},
		"a file for objects":      {func(w *bundle.Writer) error { return w.Add("objects", 0, strings.NewReader("")) }, "own", writer.ClassInvalid},
		"a name twice":            {func(w *bundle.Writer) error { return errors.Join(add(w, thing{"a", ""}), add(w, thing{"a", ""})) }, "twice", writer.ClassInvalid},
		"a name that tar has not": {func(w *bundle.Writer) error { return add(w, thing{strings.Repeat("a", 200), ""}) }, "entry", writer.ClassInvalid},
		"a negative size":         {func(w *bundle.Writer) error { return w.Add("a", -1, strings.NewReader("")) }, "more bytes", writer.ClassInvalid},
		"more than announced":     {func(w *bundle.Writer) error { return w.Add("a", header.Bytes+1, strings.NewReader("")) }, "more bytes than its header", writer.ClassInvalid},
		"a short content":         {func(w *bundle.Writer) error { return w.Add("a", 3, strings.NewReader("xx")) }, "ends after 2 of 3", 0},
		"a long content":          {func(w *bundle.Writer) error { return w.Add("a", 1, strings.NewReader("xx")) }, "more bytes than were announced", 0},
		"a content with an error": {func(w *bundle.Writer) error { return w.Add("a", 3, io.MultiReader(strings.NewReader("x"), eio)) }, "input/output error", writer.ClassDevice},
		"an error at its end":     {func(w *bundle.Writer) error { return w.Add("a", 1, io.MultiReader(strings.NewReader("x"), eio)) }, "input/output error", writer.ClassDevice},
		"another small object":    {func(w *bundle.Writer) error { return w.Object(large.hash(), 1, opened(strings.NewReader("x"))) }, "another hash", writer.ClassCorrupt},
		"another large object": {func(w *bundle.Writer) error {
			return w.Object(small.hash(), 70_000, opened(strings.NewReader(large.text)))
		}, "another hash", writer.ClassCorrupt},
		"a short object": {func(w *bundle.Writer) error { return w.Object(small.hash(), 2, opened(strings.NewReader("x"))) }, "ends after 1 of 2", 0},
		"a long object":  {func(w *bundle.Writer) error { return w.Object(small.hash(), 1, opened(strings.NewReader("xx"))) }, "more bytes than were announced", 0},
		"an object that is gone": {func(w *bundle.Writer) error {
			return w.Object(small.hash(), 1, func() (io.ReadCloser, error) { return nil, syscall.ENOENT })
		}, "no such file", 0},
		"much of objects": {func(w *bundle.Writer) error {
			return w.Object(blob.Hash{}, header.Bytes+1, opened(strings.NewReader("")))
		}, "more bytes than its header", writer.ClassInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w, err := bundle.NewWriter(&out, header, nil)
			require.NoError(t, err)
			err = c.add(w)
			require.ErrorContains(t, err, c.want)
			require.False(t, errors.Is(err, io.EOF))
			require.Equal(t, c.class, writer.ClassOf(err))
			require.Equal(t, add(w, thing{"z", ""}), w.Close())
			require.Error(t, w.Object(small.hash(), 1, opened(strings.NewReader("x"))))
			_, _, err = read(&out, nil)
			require.Error(t, err)
		})
	}
	h := header
	h.At = time.Unix(1<<40, 0)
	_, err := bundle.NewWriter(io.Discard, h, nil)
	require.ErrorIs(t, err, writer.ErrInvalid)
	h.At = time.Time{}
	_, things, err := read(bytes.NewReader(write(t, h, nil, small)), nil)
	require.NoError(t, err)
	require.Equal(t, []thing{small}, things)
}

func TestClosedWriter(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := bundle.NewWriter(&out, header, nil)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	n := out.Len()
	require.ErrorContains(t, w.Add("a", 0, strings.NewReader("")), "closed")
	require.Equal(t, n, out.Len())
}

// A target that fails anywhere fails the Writer, with its cause and its class. Nothing is left
// running, also where a Writer is given up: TestMain looks.
func TestTargetsThatFail(t *testing.T) {
	t.Parallel()
	key, files := tiny(t)
	for i, file := range files {
		k := []*crypt.Key{nil, key}[i]
		for n := 0; n < len(file); n += (1 + n/3%13) * sparse() {
			to := &full{left: n, name: "/somewhere/b.lopen"}
			w, err := bundle.NewWriter(to, bundle.Header{At: header.At, Bytes: 100}, k)
			if err == nil {
				for _, x := range []thing{{"a", "some text"}, {"", "object"}, {"", ""}} {
					if err == nil {
						err = add(w, x)
					}
				}
				if err == nil {
					err = w.Close()
				}
			}
			require.ErrorIs(t, err, syscall.ENOSPC, n)
			require.ErrorContains(t, err, "write bundle /somewhere/b.lopen: ")
			require.Equal(t, writer.ClassNoSpace, writer.ClassOf(err))
		}
	}
	w, err := bundle.NewWriter(io.Discard, header, nil)
	require.NoError(t, err)
	require.NoError(t, w.Add("zeros", 30<<20, io.LimitReader(zeros{}, 30<<20)))
	w.Abort()
	w.Abort()
	require.ErrorContains(t, w.Close(), "write bundle stream: it was given up")
}

// full is a disk that has no room beyond some bytes.
type full struct {
	left int
	name string
}

func (f *full) Name() string { return f.name }

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.left)
	if f.left -= n; n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// A source that fails is no damage.
func TestSourcesThatFail(t *testing.T) {
	t.Parallel()
	key, files := tiny(t)
	for _, file := range files {
		for i := 0; i <= len(file)+7; i += (1 + i/3%7) * sparse() {
			n := min(i, len(file))
			for cause, class := range map[error]writer.Class{syscall.EIO: writer.ClassDevice, io.ErrUnexpectedEOF: 0} {
				_, _, err := read(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(cause)), key)
				require.ErrorIs(t, err, cause, n)
				require.Equal(t, class, writer.ClassOf(err), n)
			}
		}
		_, _, err := read(iotest.OneByteReader(bytes.NewReader(file)), key)
		require.NoError(t, err)
	}
}

func TestEncryptedWithoutAKey(t *testing.T) {
	t.Parallel()
	_, files := tiny(t)
	_, _, err := read(bytes.NewReader(files[1]), nil)
	require.ErrorContains(t, err, "no key")
	require.Zero(t, writer.ClassOf(err))
	other, _, err := crypt.NewKey()
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "b.lopen")
	require.NoError(t, os.WriteFile(name, files[1], 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	_, _, err = read(f, other)
	require.ErrorIs(t, err, writer.ErrInvalid)
	require.EqualError(t, err, "read bundle "+name+`: the key is another one: it is encrypted to keys of the kind "X25519"`)
}

// An encrypted file that is no bundle is not taken for damage.
func TestEncryptedNonsense(t *testing.T) {
	t.Parallel()
	key, _, err := crypt.NewKey()
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := key.Encrypt(&out)
	require.NoError(t, err)
	fmt.Fprint(w, "some text")
	require.NoError(t, w.Close())
	_, _, err = read(&out, key)
	require.ErrorIs(t, err, writer.ErrInvalid)
	require.ErrorContains(t, err, "no bundle")
}

// The usual tools list and extract a bundle, and decrypt one.
func TestUsualTools(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "tar", "zstd", "age"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	key, text, err := crypt.NewKey()
	require.NoError(t, err)
	dir := t.TempDir()
	things := append(some(), thing{"zeros", strings.Repeat("\x00", 20<<20)}) // which is padded
	for name, data := range map[string][]byte{"plain": write(t, header, nil, things...), "sealed": write(t, header, key, things...), "key": text} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	for _, script := range []string{"tar --zstd -%sf plain", "age -d -i key sealed | tar --zstd -%sf -", "zstd -dc plain | tar -%sf -"} {
		run := func(mode string) string {
			cmd := exec.Command("sh", "-c", fmt.Sprintf(script, mode))
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			return string(out)
		}
		require.Equal(t, "lopen-bundle.json\nsessions/auth-20260214-1/journal-1-1.jsonl\nsessions/auth-20260214-1/state.json\ncheckpoints/main.jsonl\n"+
			"objects/"+things[5].hash().String()+"\nobjects/1.pack\nobjects/2.pack\nproject.jsonl\nzeros\nmanifest.jsonl\n", run("t"))
		run("x")
		got, err := os.ReadFile(filepath.Join(dir, "zeros"))
		require.NoError(t, err)
		require.Len(t, got, 20<<20)
		require.NoError(t, exec.Command("rm", "-r", filepath.Join(dir, "zeros"), filepath.Join(dir, "sessions")).Run())
	}
}

func ExampleWriter() {
	var file bytes.Buffer
	w, err := bundle.NewWriter(&file, bundle.Header{Bytes: 9}, nil)
	if err != nil {
		panic(err)
	}
	if err := w.Add("sessions/a", 9, strings.NewReader("some text")); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	r, err := bundle.NewReader(&file, nil)
	if err != nil {
		panic(err)
	}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break // the whole file has agreed
		}
		if err != nil {
			panic(err)
		}
		text, err := io.ReadAll(r)
		fmt.Println(e.Name, string(text), err)
	}
	// Output: sessions/a some text <nil>
}

// FuzzRead reads bytes as a file, as a compressed stream and as a tar: what is refused has a
// class, what is not refused is the same when it is written again.
func FuzzRead(f *testing.F) {
	key, files := tiny(f)
	f.Add(files[0], byte(0))
	f.Add(files[1], byte(0))
	f.Add(cut(files[0], bundle.SealSize), byte(1))
	f.Add(forge(f, header, func(f *forger) { f.file("sessions/a", "x") }), byte(2))
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		switch kind % 3 {
		case 1:
			data = bundle.Sealed(data)
		case 2:
			data = bundle.Forge(data)
		}
		h, things, err := read(bytes.NewReader(data), key)
		if err != nil {
			requireRefused(t, err)
			return
		}
		h2, again, err := read(bytes.NewReader(write(t, *h, nil, things...)), nil)
		require.NoError(t, err)
		require.Equal(t, h, h2)
		require.ElementsMatch(t, things, again)
	})
}
