package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// TestSweepBeside has two sessions make and remove checkpoints of one project, whose
// files change, while a third sweeps: no checkpoint that stands loses a content.
func TestSweepBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := newPlace(t, dir)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "checkpoints/one"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "checkpoints/two"), 0o700))
	for i := range 20 {
		first.write(map[string]string{fmt.Sprint("file", i): fmt.Sprint("content ", i)})
	}
	check := func(s *Store) error {
		list, err := s.List()
		for _, info := range list {
			m, lerr := s.Load(info.ID)
			if lerr != nil {
				return lerr
			}
			m.Blobs(func(h blob.Hash, _ int64) { err = errors.Join(err, s.blobs.Verify(h)) })
		}
		return err
	}
	work := func(name string) error {
		p := openPlace(t, dir) // with descriptors, and so with locks, of its own
		mine, err := p.dir.Sub(name)
		if err != nil {
			return err
		}
		defer mine.Close()
		s := New(mine, p.blobs, p.tree)
		var last *Manifest
		for i := range 10 {
			if err := os.WriteFile(p.path(fmt.Sprint("file", i)), fmt.Append(nil, name, i), 0o644); err != nil {
				return err
			}
			if last, err = s.Create(context.Background(), testMeta, last, nil); err != nil {
				return err
			}
			if i%2 == 1 { // its base, too
				if err := errors.Join(check(s), s.Remove(last.ID-1), s.Remove(last.ID)); err != nil {
					return err
				}
			}
		}
		if _, err = s.Create(context.Background(), testMeta, last, nil); err != nil {
			return err
		}
		return check(s)
	}
	done := make(chan struct{})
	var workers, sweeper sync.WaitGroup
	errs := make([]error, 3)
	for i, name := range []string{"one", "two"} {
		workers.Go(func() { errs[i] = work(name) })
	}
	sweeper.Go(func() {
		p := openPlace(t, dir)
		for {
			_, err := p.blobs.Sweep(func() (map[blob.Hash]struct{}, error) {
				into := map[blob.Hash]struct{}{}
				return into, Roots(p.dir, ".", into)
			}, false)
			if err != nil && !errors.Is(err, writer.ErrBusy) && !errors.Is(err, os.ErrNotExist) {
				errs[2] = err
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	workers.Wait()
	close(done)
	sweeper.Wait()
	require.NoError(t, errors.Join(errs...))
}
