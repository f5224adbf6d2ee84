package output

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/envelope"
)

func filesIn(t *testing.T, dir string) (all []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestCompressedOutput compresses what an attempt printed, in all its parts, and reads the same.
// A reader that was in it continues.
func TestCompressedOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []codec.Codec{codec.Zstd, codec.Gzip} {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := begin(t, dir, 1)
			var job func() error
			w.Compress(codec.Options{Codec: string(c)}, func(fn func() error) { job = fn })
			log, raw := w.Stream(Log, ""), w.Stream(Raw, "")
			line := strings.Repeat("a line of output ", 60) + "\n"
			for range 14 << 10 {
				_, _ = io.WriteString(log, line)
			}
			noise := make([]byte, 100_000)
			_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
			_, _ = raw.Write(noise)
			w.Prompt([]byte("a small prompt"))
			live, err := OpenReader(open(t, dir), "000001", Log)
			require.NoError(t, err)
			defer live.Close()
			var seen bytes.Buffer
			_, err = io.CopyN(&seen, live, 1<<20)
			require.NoError(t, err)
			require.NoError(t, w.Close(record.Failed, "", true))
			want, wantRaw, before := read(t, dir, "000001", Log), read(t, dir, "000001", Raw), filesIn(t, dir)
			all, err := List(open(t, dir))
			require.NoError(t, err)

			require.NoError(t, job(), "Close does not wait for it")
			require.True(t, want == read(t, dir, "000001", Log))
			require.True(t, wantRaw == read(t, dir, "000001", Raw))
			require.Equal(t, "a small prompt", read(t, dir, "000001", Prompt))
			_, err = io.Copy(&seen, live)
			require.NoError(t, err)
			require.True(t, want == seen.String())
			var after []string
			for _, name := range before {
				if strings.Contains(name, ".log") {
					name += c.Suffix()
				}
				after = append(after, name)
			}
			require.ElementsMatch(t, after, filesIn(t, dir), "what is small or gets no smaller stays as it is")
			require.Less(t, size(t, dir, "000001.log"), int64(1<<20))
			now, err := List(open(t, dir))
			require.NoError(t, err)
			require.Equal(t, all[0].Bytes, now[0].Bytes)
			require.Equal(t, "000001.log"+c.Suffix(), now[0].Path(Log))
			require.Equal(t, "000001.raw", now[0].Path(Raw))
			require.ElementsMatch(t, []File{Log, Raw, Prompt}, now[0].Files)

			d := open(t, dir)
			require.NoError(t, removeFiles(d, "000001", Log))
			require.NoError(t, thin(d, "", 0))
			require.Empty(t, filesIn(t, dir))
		})
	}
}

// TestPowerCutWhileOutputIsCompressed cuts the power before every call: an output is whole, in
// one form or in both.
func TestPowerCutWhileOutputIsCompressed(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		disk := crashfs.New(mode)
		dir := disk.FS()
		want := strings.Repeat("a line of output\n", 5000)
		require.NoError(t, writer.ReplaceFile(dir, "000001.log", []byte(want), filePerm))
		cuts := 0
		check := func(op crashfs.Op) crashfs.Fault {
			for _, v := range disk.Variants(nil, 0) {
				cuts++
				left := disk.Crash(v).FS()
				r, err := OpenReader(left, "000001", Log)
				require.NoError(t, err, "%s %s, %s", op.Call, op.Name, v.Name)
				got, err := io.ReadAll(r)
				require.NoError(t, err, "%s %s, %s", op.Call, op.Name, v.Name)
				require.True(t, want == string(got), "%s %s, %s", op.Call, op.Name, v.Name)
				all, err := List(left)
				require.NoError(t, err)
				require.EqualValues(t, len(want), all[0].Bytes)
				require.Equal(t, []File{Log}, all[0].Files)
			}
			return crashfs.Fault{}
		}
		disk.SetHook(check)
		require.NoError(t, compress(dir, "000001", codec.Options{}))
		disk.SetHook(nil)
		check(crashfs.Op{Call: "the end"})
		require.Greater(t, cuts, 20)
	}
}

// TestOutputThatCannotBeCompressedStays fails each call once.
func TestOutputThatCannotBeCompressedStays(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	for _, call := range []string{"create", "write", "sync", "rename", "syncdir", "remove"} {
		disk := crashfs.New(crashfs.Ext4)
		dir := disk.FS()
		want := strings.Repeat("a line of output\n", 5000)
		require.NoError(t, writer.ReplaceFile(dir, "000001.log", []byte(want), filePerm))
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.Call == call {
				return crashfs.Fault{Err: full}
			}
			return crashfs.Fault{}
		})
		require.ErrorIs(t, compress(dir, "000001", codec.Options{}), full, call)
		disk.SetHook(nil)
		r, err := OpenReader(disk.FS(), "000001", Log)
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.True(t, want == string(got), call)
	}
}

// TestCopyOfCompressedOutput copies what is compressed, and what is compressed meanwhile.
func TestCopyOfCompressedOutput(t *testing.T) {
	t.Parallel()
	want := strings.Repeat("a line of output\n", 5000)
	for _, r := range []*redact.Redactor{nil, {}} {
		disk := crashfs.New(crashfs.Ext4)
		dir := disk.FS()
		for _, name := range []string{"000001.log", "000002.log"} {
			require.NoError(t, writer.ReplaceFile(dir, name, []byte(want), filePerm))
		}
		require.NoError(t, compress(dir, "000001", codec.Options{Codec: "gzip"}))
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if strings.HasSuffix(op.Name, "000002.log") {
				disk.SetHook(nil)
				require.NoError(t, compress(dir, "000002", codec.Options{}))
			}
			return crashfs.Fault{}
		})
		to := t.TempDir()
		require.NoError(t, Copy(dir, open(t, to), r, nil))
		require.True(t, want == read(t, to, "000001", Log))
		require.True(t, want == read(t, to, "000002", Log))
	}
}

// TestPrunedWhileItIsCompressed removes an output while it is compressed: it does not come back.
func TestPrunedWhileItIsCompressed(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	dir := disk.FS()
	require.NoError(t, writer.ReplaceFile(dir, "000001.log", bytes.Repeat([]byte("a line\n"), 20_000), filePerm))
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "sync" {
			disk.SetHook(nil)
			require.NoError(t, dir.Remove("000001.log"))
		}
		return crashfs.Fault{}
	})
	require.NoError(t, compress(dir, "000001", codec.Options{}))
	entries, err := dir.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestForeignCompressedOutput reads bombs, in bounds.
func TestForeignCompressedOutput(t *testing.T) { // measures memory: not parallel
	for _, how := range []codec.Options{{}, {Codec: "gzip"}} {
		e := how.Encoder()
		var honest bytes.Buffer
		f := e.Create(&honest)
		zeros := make([]byte, 1<<20)
		for range 64 {
			_, err := f.Write(zeros)
			require.NoError(t, err)
		}
		_, _, err := f.End()
		require.NoError(t, err)
		var small bytes.Buffer
		f = e.Create(&small)
		_, err = f.Write([]byte("some text"))
		require.NoError(t, err)
		_, _, err = f.End()
		require.NoError(t, err)
		for name, data := range map[string][]byte{
			"of more than an output has": honest.Bytes(), "cut off": honest.Bytes()[:honest.Len()/2], "nothing": {}, "text": bytes.Repeat([]byte("text\n"), 1000),
			"too long": append(e.Codec.Pad(headBytes), small.Bytes()...),
		} {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "000001.log"+e.Codec.Suffix()), data, filePerm))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := OpenReader(open(t, dir), "000001", Log)
			if err == nil {
				var n int64
				n, err = io.Copy(io.Discard, r)
				require.LessOrEqual(t, n, int64(headBytes), name)
				require.NoError(t, r.Close())
			}
			if name != "of more than an output has" {
				require.ErrorIs(t, err, envelope.ErrCorrupt, name)
				require.ErrorContains(t, err, dir, name)
			}
			_, lerr := List(open(t, dir))
			require.NoError(t, lerr)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), name)
		}
	}
}
