package files

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// sealed puts the magic before and a checksum behind a body.
func sealed(body string) []byte {
	b := append([]byte(magic), body...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// body is what is sealed.
func body(s *Snapshot) string {
	b := s.Encode()
	return string(b[len(magic) : len(b)-crc32.Size])
}

func sample() *Snapshot {
	link := sha256.Sum256([]byte("to\xff"))
	return &Snapshot{
		At: time.Unix(1, 2).UTC(), Stored: blob.Hash{7}, Paths: []string{"a", "\xff"},
		Skipped: []Skip{{Path: "p", Reason: Special}, {Path: "p/q", Reason: Nested, State: blob.Hash{1, 2}}, {Path: "r", Reason: Unreadable, Err: "why"}},
		Files: []Fingerprint{
			{Path: "a", Mode: fs.ModeDir | 0o750}, {Path: "a/b", Mode: 0o644, Size: 3, ModTime: -5, ChangeTime: 1 << 60, Inode: math.MaxUint64, Hash: blob.Hash{1}},
			{Path: "a/b.c", Mode: fs.ModeSymlink, Size: 4, ModTime: 1, Target: "to\xff", Hash: link}, {Path: "é", Mode: 0, Hash: blob.Hash{2}},
		},
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	s := sample()
	again, err := Decode(s.Encode())
	require.NoError(t, err)
	require.Equal(t, s, again)
	for i := range s.Encode() { // every byte counts
		damaged := s.Encode()
		damaged[i] ^= 1
		_, err := Decode(damaged)
		require.Error(t, err, "byte %d", i)
		_, err = Decode(damaged[:i])
		require.Error(t, err, "cut at %d", i)
	}
	_, err = Decode(sealed("\x02what"))
	require.ErrorIs(t, err, envelope.ErrFutureVersion)
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	files := func(all ...Fingerprint) string { return body(&Snapshot{Files: all}) }
	dir := func(p string) Fingerprint { return Fingerprint{Path: p, Mode: fs.ModeDir | 0o755} }
	for name, body := range map[string]string{
		"version 0":          "\x00" + body(sample())[1:],
		"something behind":   body(sample()) + "\x00",
		"cut off":            body(sample())[:40],
		"twice":              files(dir("a"), dir("a")),
		"not sorted":         files(dir("b"), dir("a")),
		"outside":            files(dir("../a")),
		"the folder above":   files(dir("..")),
		"the root":           files(dir(".")),
		"absolute":           files(dir("/a")),
		"not clean":          files(dir("a//b")),
		"a slash at the end": files(dir("a/")),
		"NUL":                files(dir("a\x00")),
		"no path":            files(dir("")),
		"a .git":             files(dir(".gitignore"), dir("a/.Git/x")),
		"a .lopen":           files(dir(".lopen")),
		"too deep":           files(dir(strings.Repeat("a/", maxDepth+2) + "a")),
		"too long":           files(dir(strings.Repeat("a", maxPath+1))),
		"a size below 0":     files(Fingerprint{Path: "a", Size: -1}),
		"mode of a FIFO":     files(Fingerprint{Path: "a", Mode: fs.ModeNamedPipe}),
		"a link's mode":      files(Fingerprint{Path: "a", Mode: fs.ModeSymlink | 0o777}),
		"a reason":           body(&Snapshot{Skipped: []Skip{{Path: "a", Reason: "mood"}}}),
		"a count":            body(&Snapshot{})[:33] + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	} {
		_, err := Decode(sealed(body))
		require.ErrorIs(t, err, envelope.ErrCorrupt, name)
	}
	setuid := strings.Replace(files(Fingerprint{Path: "a", Mode: 0o755}), "\xb4\x0f", "\xb4\x4f", 1)
	_, err := Decode(sealed(setuid))
	require.ErrorContains(t, err, "mode", "setuid")
}

// What is decoded takes memory in proportion to its bytes, also when each path shares a
// long part with the one before.
func TestDecodeIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("800 MB of paths; -short")
	}
	long := strings.Repeat(strings.Repeat("x", 200)+"/", 200)
	s := &Snapshot{}
	for i := range 20_000 {
		s.Files = append(s.Files, Fingerprint{Path: fmt.Sprintf("%s%05d", long, i), Mode: fs.ModeDir | 0o755})
	}
	data := s.Encode()
	require.Less(t, len(data), 300_000)
	_, err := Decode(data)
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	require.ErrorContains(t, err, "more bytes")
	// A tree that is as deep as Take goes can be read again.
	s.Files = nil
	for i := range maxDepth {
		s.Files = append(s.Files, Fingerprint{Path: strings.Repeat("d/", i) + "d", Mode: fs.ModeDir | 0o755})
	}
	_, err = Decode(s.Encode())
	require.NoError(t, err)
}

func FuzzDecode(f *testing.F) {
	f.Add(body(sample()))
	f.Add(body(&Snapshot{Files: []Fingerprint{{Path: "d", Mode: fs.ModeDir | 0o755}}}))
	f.Fuzz(func(t *testing.T, body string) {
		for _, data := range [][]byte{[]byte(body), sealed(body)} {
			s, err := Decode(data)
			if err != nil {
				continue
			}
			again, err := Decode(s.Encode())
			require.NoError(t, err)
			require.Equal(t, s, again)
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("!/a[!b-c]/**/*.o ", "a/b")
	f.Fuzz(func(_ *testing.T, line, path string) {
		if p, ok := parsePattern(line); ok {
			p.match(path, path, true)
		}
	})
}

// A snapshot of many files is used again, and a sparse file in its place takes no memory.
func TestLoadLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := writer.OpenFS(dir)
	require.NoError(t, err)
	defer root.Close()
	s := &Snapshot{At: time.Unix(1, 2).UTC()}
	for i := range 40_000 {
		s.Files = append(s.Files, Fingerprint{Path: fmt.Sprintf("file%05d", i), Mode: 0o644, Size: int64(i), Hash: sha256.Sum256([]byte{byte(i), byte(i >> 8)})})
	}
	require.Greater(t, len(s.Encode()), 1<<20)
	require.NoError(t, Remember(root, "s", s, nil, ""))
	again, err := load(root, "s")
	require.NoError(t, err)
	require.True(t, s.Equal(again))

	require.NoError(t, os.Truncate(filepath.Join(dir, "s"), MaxEncoded))
	data, err := read(root, "s")
	require.NoError(t, err)
	require.Less(t, len(data), 4<<20)
	_, err = load(root, "s")
	require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err))
}

// load reads what Remember wrote, whoever wrote it.
func load(dir writer.FS, name string) (*Snapshot, error) {
	data, err := read(dir, name)
	if err != nil {
		return nil, err
	}
	return Decode(data)
}
