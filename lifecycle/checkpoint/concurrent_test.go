package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// TestSweepMeanwhile has two processes make and remove checkpoints of one project, whose
// files change, while a third sweeps: no checkpoint that stands loses an object.
func TestSweepMeanwhile(t *testing.T) {
	t.Parallel()
	first := newPlace(t)
	for i := range 20 {
		first.write(fmt.Sprint("dir", i%3, "/file", i), fmt.Sprint("content ", i))
	}
	ctx := context.Background()
	errs := make([]error, 3)
	patiently := func(do func() error) (err error) { // a lock that others have again and again is waited for so long only
		for err = do(); errors.Is(err, writer.ErrBusy); err = do() {
		}
		return err
	}
	create := func(p place, name string) error {
		return patiently(func() error {
			_, err := p.Create(ctx, about(name, Manual, nil))
			return err
		})
	}
	work := func(p place, name string) (err error) {
		for i := 0; i < 8 && err == nil; i++ {
			if err = os.WriteFile(p.path(fmt.Sprint("dir", i%3, "/file", i)), fmt.Append(nil, name, i), 0o644); err == nil {
				err = create(p, name)
			}
			if err == nil && i%2 == 1 { // what the tracker's base was stored as, too
				err = patiently(func() error {
					_, err := p.Forget(ctx, "test", func(e *Entry) bool { return e.Session == name })
					return err
				})
			}
		}
		return cmp.Or(err, create(p, name))
	}
	done := make(chan struct{})
	var workers, sweeper sync.WaitGroup
	for i, name := range []string{"one", "two"} {
		p := openPlace(t, first.dir, Options{}) // with locks of its own
		workers.Go(func() { errs[i] = work(p, name) })
	}
	p := openPlace(t, first.dir, Options{})
	sweeper.Go(func() {
		for {
			if errs[2] = patiently(func() error { return sweep(p.Store) }); errs[2] != nil {
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
	require.Len(t, first.numbers(), 2)
	require.NoError(t, whole(openPlace(t, first.dir, Options{}).Store))
	require.NoError(t, sweep(p.Store))
	require.NoError(t, whole(openPlace(t, first.dir, Options{}).Store))
	left, err := filepath.Glob(first.dir + "/checkpoints/.tmp-*")
	require.NoError(t, err)
	require.Empty(t, left)
}
