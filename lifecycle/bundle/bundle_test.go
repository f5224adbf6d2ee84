package bundle_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crypt"
)

// A thing is a file or, without a name, an object.
type thing struct{ name, text string }

func (x thing) hash() blob.Hash { return sha256.Sum256([]byte(x.text)) }

var header = bundle.Header{
	Lopen: "1", At: time.Date(2026, 2, 14, 9, 30, 0, 5, time.UTC), Bytes: 32 << 20,
	Project:  bundle.Project{Path: "/p", Head: "abc", Branch: "main"},
	Sessions: []bundle.Session{{ID: "auth-20260214-1", Module: "auth", Incarnation: "0123456789abcdef", Status: "running", Seq: 7, Done: 1, Total: 3}},
}

// write returns a bundle of things.
func write(t testing.TB, h bundle.Header, key *crypt.Key, things ...thing) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := bundle.NewWriter(&out, h, key)
	require.NoError(t, err)
	for _, x := range things {
		require.NoError(t, add(w, x))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func add(w *bundle.Writer, x thing) error {
	if x.name != "" {
		return w.Add(x.name, int64(len(x.text)), strings.NewReader(x.text))
	}
	return w.Object(x.hash(), int64(len(x.text)), func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(x.text)), nil })
}

// read returns what a bundle has.
func read(from io.Reader, key *crypt.Key) (h *bundle.Header, things []thing, err error) {
	r, err := bundle.NewReader(from, func() (*crypt.Key, error) {
		if key == nil {
			return nil, fmt.Errorf("no key")
		}
		return key, nil
	})
	if err != nil {
		return nil, nil, err
	}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Header(), things, nil
		}
		if err != nil {
			return r.Header(), things, err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return r.Header(), things, err
		}
		things = append(things, thing{e.Name, string(text)})
	}
}

// some are things of every kind.
func some() []thing {
	things := []thing{
		{"sessions/auth-20260214-1/journal-1-1.jsonl", strings.Repeat("a record\n", 100)},
		{"sessions/auth-20260214-1/state.json", "{}\n"},
		{"checkpoints/main.jsonl", ""},
		{"", "an object"}, {"", ""}, {"", strings.Repeat("large", 20_000)},
	}
	for i := range 60 { // more than a pack
		things = append(things, thing{"", strings.Repeat(fmt.Sprint(i, " "), 8000)})
	}
	return append(things, thing{"project.jsonl", "{}\n"})
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	key, _, err := crypt.NewKey()
	require.NoError(t, err)
	for _, k := range []*crypt.Key{nil, key} {
		packed := write(t, header, k, some()...)
		require.Equal(t, k != nil, crypt.Encrypted(packed))
		h, things, err := read(bytes.NewReader(packed), key)
		require.NoError(t, err)
		require.Equal(t, header, *h)
		require.ElementsMatch(t, some(), things)
	}
	_, things, err := read(bytes.NewReader(write(t, header, nil)), nil)
	require.NoError(t, err)
	require.Empty(t, things)
}
