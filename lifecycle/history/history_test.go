package history

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
)

// A State of which a lot comes of few bytes is written so that it can be read.
func TestRatio(t *testing.T) {
	t.Parallel()
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	state, metrics := []byte(strings.Repeat("x", 4*free)+"\n"), []byte("{}\n")
	for i, how := range []string{"zstd", "gzip", "none"} {
		m, err := Write(dir, Manifest{Epoch: 1, Seq: uint64(i + 2)}, state, metrics, codec.Options{Codec: how})
		require.NoError(t, err)
		require.Equal(t, "history/1-"+[]string{"2.json.zst", "3.json.gz", "4.json"}[i], m.File())
		info, err := dir.Lstat(m.File())
		require.NoError(t, err)
		require.GreaterOrEqual(t, decoded(info.Size()), m.Bytes)
		require.Equal(t, how != "none", info.Size() < 1<<20, "it is compressed nevertheless")
		s, n, err := Read(dir, m.ID(), m.SHA256)
		require.NoError(t, err)
		require.Equal(t, state, s)
		require.Equal(t, metrics, n)
		got, err := ReadManifest(dir, m.ID())
		require.NoError(t, err)
		require.Equal(t, m.SHA256, got.SHA256)
		require.Equal(t, m.File(), got.File())
		require.Equal(t, m.File(), File(dir, m.ID()))
	}
	ids, err := IDs(dir)
	require.NoError(t, err)
	require.Equal(t, []ID{{1, 2}, {1, 3}, {1, 4}}, ids)
	for _, id := range ids {
		require.NoError(t, Remove(dir, id))
	}
	left, err := dir.ReadDir(Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// What gets no smaller stays as it is.
func TestNoSmaller(t *testing.T) {
	t.Parallel()
	data, c, err := pack(codec.Options{}.Encoder(), []byte("{}\n"), []byte("{}\n"))
	require.NoError(t, err)
	require.Equal(t, codec.None, c)
	require.Equal(t, "{}\n{}\n", string(data))
}

// What is beyond a bound is refused before memory is taken for it.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"zstd", "gzip"} {
		refused(t, codec.Options{Codec: how}.Encoder())
	}
}

func refused(t *testing.T, e codec.Encoder) {
	whole := func(bytes int, active string) []byte {
		content := strings.Repeat(" ", bytes)
		var out strings.Builder
		fmt.Fprintf(&out, `{"schemaVersion":1,"epoch":1,"seq":2,"bytes":%d,"sha256":"%x","tasks":{"active":[%s]}}`+"\n%s",
			bytes, sha256.Sum256([]byte(content)), active, content)
		data, _, err := pack(e, []byte(out.String()))
		require.NoError(t, err)
		return bytesBefore(e.Codec, data)
	}
	for want, data := range map[string][]byte{
		"more than the":   whole(8<<20, ""),
		"of a manifest":   whole(1, `"`+strings.Repeat("x", 1<<20)+`"`),
		"names more than": whole(1, strings.Repeat(`"",`, 20)+`""`),
	} {
		_, _, err := unpack(e.Codec, bytes.NewReader(data), int64(len(data)), ID{1, 2}, "")
		require.ErrorContains(t, err, want)
	}
}

// bytesBefore is a file without what Write puts behind what compresses too well.
func bytesBefore(c codec.Codec, data []byte) []byte {
	if i := bytes.Index(data, c.LeadMark()); i >= 0 {
		return data[:i]
	}
	return data
}

// FuzzUnpack requires of any bytes that what comes of them follows their number.
func FuzzUnpack(f *testing.F) {
	line := func(content string) []byte {
		return fmt.Appendf(nil, `{"schemaVersion":1,"epoch":1,"seq":2,"bytes":%d,"sha256":"%x"}`+"\n", len(content), sha256.Sum256([]byte(content)))
	}
	for _, content := range []string{"", "{}\n{}\n", strings.Repeat(" ", 1<<20) + "\n"} {
		data, _, err := pack(codec.Options{}.Encoder(), line(content), []byte(content))
		require.NoError(f, err)
		f.Add(data)
		f.Add(append(data, data...))
		f.Add(data[:len(data)/2])
	}
	bomb, _, err := pack(codec.Options{}.Encoder(), bytes.Repeat([]byte(" "), 64<<20))
	require.NoError(f, err)
	f.Add(bytesBefore(codec.Zstd, bomb))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range codec.All {
			state, metrics, err := unpack(c, bytes.NewReader(data), int64(len(data)), ID{1, 2}, "")
			if err == nil {
				require.LessOrEqual(t, int64(len(state)+len(metrics)), decoded(int64(len(data))))
			}
		}
	})
}

// List has what can be read and what cannot, and Prune leaves the newest of each reason
// and what is asked for by name.
func TestListAndPrune(t *testing.T) {
	t.Parallel()
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	all, unread, err := List(dir)
	require.NoError(t, err, "there is no folder yet")
	require.Empty(t, all)
	require.Empty(t, unread)
	for i, reason := range []Reason{Large, Interval, Phase, Interval, Iteration, Interval} {
		_, err := Write(dir, Manifest{Epoch: uint64(6 - i), Seq: uint64(i + 1), Reason: reason}, []byte("{}\n"), []byte("{}\n"), codec.Options{})
		require.NoError(t, err)
	}
	require.NoError(t, writer.ReplaceFile(dir, Dir+"/1-9.json.zst", []byte("x"), 0o600))
	require.NoError(t, writer.ReplaceFile(dir, Dir+"/notes", []byte("x"), 0o600))
	require.NoError(t, Prune(dir, 0))
	seqs := func() (seqs []uint64) {
		all, unread, err := List(dir)
		require.NoError(t, err)
		require.Len(t, unread, 1)
		require.Equal(t, ID{1, 9}, unread[0].ID)
		require.Equal(t, writer.ClassCorrupt, writer.ClassOf(unread[0].Err))
		for _, m := range all {
			seqs = append(seqs, m.Seq)
		}
		return seqs
	}
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6}, seqs())
	require.NoError(t, Prune(dir, 1))
	require.Equal(t, []uint64{1, 3, 5, 6}, seqs())
}
