package checkpoint

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/envelope"
)

var testFolder = []item{
	{name: "a", kind: kindFile, mode: 0o644, size: 300, hash: blob.Hash{1, 2}},
	{name: "a-b", kind: kindFolder, mode: 0o755, hash: blob.Hash{3}},
	{name: "link", kind: kindLink, text: "../x"},
	{name: "pipe", kind: kindUnknown, text: string(files.Special)},
	{name: "sub", kind: kindUnknown, text: string(files.Nested), hash: blob.Hash{5}},
	{name: "\xff", kind: kindFile, mode: 0, size: 0, hash: blob.Hash{4}},
}

func TestFolderIsAsItHasAlwaysBeen(t *testing.T) {
	t.Parallel()
	data, err := encodeFolder(testFolder)
	require.NoError(t, err)
	zeros := func(n int) string { return strings.Repeat("00", n) }
	require.Equal(t, hex.EncodeToString([]byte("tree 1\n"))+
		"66"+"0161"+"01a4"+"ac02"+"0102"+zeros(30)+
		"64"+"03612d62"+"01ed"+"03"+zeros(31)+
		"6c"+"046c696e6b"+"042e2e2f78"+
		"3f"+"0470697065"+"00"+
		"3f"+"03737562"+"07"+"05"+zeros(31)+
		"66"+"01ff"+"0000"+"00"+"04"+zeros(31), hex.EncodeToString(data))
	items, err := decodeFolder(data)
	require.NoError(t, err)
	require.Equal(t, testFolder, items)
	for n, reason := range []files.Reason{"special", "too-large", "too-deep", "unreadable", "unstable", "symlinked", "ignored", "repository"} {
		require.Equal(t, reason, reasons[n]) // their places are in objects
	}
}

// A reason that has no place in objects is none that is written.
func TestFolderOfAnUnknownReason(t *testing.T) {
	t.Parallel()
	_, err := encodeFolder([]item{{name: "a", kind: kindUnknown, text: "because"}})
	require.ErrorContains(t, err, "because")
}

// A folder has exactly one encoding, and no other is read.
func TestFolderRefused(t *testing.T) {
	t.Parallel()
	h := strings.Repeat("h", 32)
	file := func(name string) string { return "f" + string(rune(len(name))) + name + "\x01\xa4\x05" + h }
	for name, text := range map[string]string{
		"order":         file("b") + file("a"),
		"twice":         file("a") + file("a"),
		"no name":       file(""),
		"dot":           file("."),
		"dots":          file(".."),
		"slash":         file("a/b"),
		"NUL":           file("a\x00b"),
		"git":           file(".GIT"),
		"lopen":         file(".lopen"),
		"kind":          "x" + file("a")[1:],
		"cut":           file("a")[:20],
		"rest":          file("a") + "f",
		"mode":          "f\x01a\x02\x00\x05" + h,
		"setuid":        "f\x01a\x0f\xff\x05" + h,
		"long size":     "f\x01a\x01\xa4\x85\x00" + h,
		"huge size":     "f\x01a\x01\xa4\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + h,
		"long name":     "f\x81\x00a\x01\xa4\x05" + h,
		"name too long": "f\xff\xff\x03a\x01\xa4\x05" + h,
		"reason":        "?\x01a\x20",
		"no reason":     "?\x01a",
		"target":        "l\x01a\x02x\x00",
		"folder":        "d\x01a\x01\xa4" + h[:31],
	} {
		_, err := decodeFolder([]byte(treeMagic + text))
		require.Error(t, err, name)
	}
	_, err := decodeFolder([]byte(treeMagic + file("a") + file("b")))
	require.NoError(t, err)
	_, err = decodeFolder([]byte("tree 2\n"))
	require.ErrorIs(t, err, envelope.ErrFutureVersion)
	_, err = decodeFolder([]byte("a file"))
	require.Error(t, err)
	_, err = encodeFolder([]item{{name: "a/b", kind: kindFile}})
	require.Error(t, err)
}

func FuzzFolder(f *testing.F) {
	data, err := encodeFolder(testFolder)
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(treeMagic))
	f.Add([]byte(treeMagic + "?\x01a\x03"))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := decodeFolder(data)
		if err != nil {
			return
		}
		again, err := encodeFolder(items)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, again))
	})
}

func FuzzRules(f *testing.F) {
	f.Add(encodeRules([2][]ruleFile{{{"//exclude", blob.Hash{1}}, {".gitignore", blob.Hash{2}}}, {{".gitignore", blob.Hash{2}}, {"a/.gitignore", blob.Hash{3}}}}))
	f.Add([]byte(rulesMagic + "\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lists, err := decodeRules(data)
		if err != nil {
			return
		}
		require.Equal(t, data, encodeRules(lists))
	})
}

// FuzzChain reads a chain of any bytes, and what is added behind what it takes for whole.
func FuzzChain(f *testing.F) {
	one := lineOf(f, testEntry(1, ""))
	two := lineOf(f, testEntry(2, one))
	f.Add([]byte(one + two + lineOf(f, pinning{1, true}) + lineOf(f, removal{2, "x"})))
	f.Add([]byte(one + "{}\n" + two[:40]))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse(data, "chain", nil)
		if err != nil {
			require.ErrorIs(t, err, envelope.ErrFutureVersion)
			return
		}
		require.LessOrEqual(t, c.whole, int64(len(data)))
		for i, e := range c.entries {
			require.True(t, i == 0 || c.entries[i-1].Number < e.Number)
		}
		next := testEntry(c.next+uint64(c.tail), "")
		again, err := parse(append(data[:c.whole:c.whole], lineOf(t, next)...), "chain", c)
		require.NoError(t, err)
		require.Len(t, again.entries, len(c.entries)+1)
		require.Len(t, again.faults, len(c.faults))
		require.Equal(t, next.Number, again.newest().Number)
	})
}
