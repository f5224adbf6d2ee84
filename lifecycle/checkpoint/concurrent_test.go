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
	work := func(p place, name string) (err error) {
		for i := 0; i < 8 && err == nil; i++ {
			if err = os.WriteFile(p.path(fmt.Sprint("dir", i%3, "/file", i)), fmt.Append(nil, name, i), 0o644); err == nil {
				_, err = p.Create(ctx, about(name, Manual, nil))
			}
			if err == nil && i%2 == 1 { // what the tracker's base was stored as, too
				_, err = p.Forget(ctx, "test", func(e *Entry) bool { return e.Session == name })
			}
		}
		if err == nil {
			_, err = p.Create(ctx, about(name, Manual, nil))
		}
		return err
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
			if err := sweep(p.Store); err != nil && !errors.Is(err, writer.ErrBusy) {
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
	require.Len(t, first.numbers(), 2)
	require.NoError(t, whole(openPlace(t, first.dir, Options{}).Store))
	require.NoError(t, sweep(p.Store))
	require.NoError(t, whole(openPlace(t, first.dir, Options{}).Store))
	left, err := filepath.Glob(first.dir + "/checkpoints/.tmp-*")
	require.NoError(t, err)
	require.Empty(t, left)
}
