package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/backup"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/crypt"
)

// An item is an entry with its content; without a name it is an object.
type item struct{ name, content string }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at returns options with a fixed clock.
func at(now time.Time) backup.Options {
	return backup.Options{Now: func() time.Time { return now }}
}

// keyed adds a key to options: a text that ParseKey takes.
func keyed(o backup.Options, text string) backup.Options {
	o.Encrypt = true
	o.Key = func() (*crypt.Key, error) { return crypt.ParseKey([]byte(text)) }
	return o
}

func header(now time.Time) *bundle.Header {
	return &bundle.Header{Lopen: "test", At: now, Project: bundle.Project{Path: "/project"}, Sessions: []bundle.Session{{ID: "one"}}}
}

// add gives items to a Writer and closes it.
func add(w *backup.Writer, items []item) (backup.Snapshot, error) {
	defer w.Discard()
	for _, i := range items {
		var err error
		if i.name != "" {
			err = w.Add(i.name, int64(len(i.content)), strings.NewReader(i.content))
		} else {
			err = w.Object(blob.Hash(sha256.Sum256([]byte(i.content))), int64(len(i.content)), func() (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(i.content)), nil
			})
		}
		if err != nil {
			return backup.Snapshot{}, err
		}
	}
	err := w.Close()
	return w.Made(), err
}

func store(f *backup.Folder, now time.Time, items []item) (backup.Snapshot, error) {
	return storeBy(f, 1<<20, now, items)
}

// storeBy makes a snapshot with a batch every so many bytes.
func storeBy(f *backup.Folder, limit int64, now time.Time, items []item) (backup.Snapshot, error) {
	w, err := f.Begin(context.Background(), header(now), false)
	if err != nil {
		return backup.Snapshot{}, err
	}
	w.Limit(limit)
	return add(w, items)
}

// read returns the items of a snapshot.
func read(f *backup.Folder, number uint64) (items []item, err error) {
	s, err := f.Source(number)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		var content bytes.Buffer
		if err == nil {
			_, err = io.Copy(&content, s)
		}
		if err != nil {
			return items, err
		}
		if int64(content.Len()) != e.Size {
			return items, fmt.Errorf("%d bytes instead of %d", content.Len(), e.Size)
		}
		items = append(items, item{e.Name, content.String()})
	}
}

func create(t *testing.T, o backup.Options) *backup.Folder {
	t.Helper()
	f, err := backup.Create(filepath.Join(t.TempDir(), "backup"), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// noise returns n bytes that no two seeds share.
func noise(seed, n int) string {
	text := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(text) // never fails
	return string(text)
}

func TestMain(m *testing.M) {
	crashfs.InMemory()
	m.Run()
}
