package sections

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sync/errgroup"
)

// Warm makes sure of the outlines of files: what changed is read, hashed and
// parsed again, by as many workers as there are processors. step, which may be
// nil, is called after each file, one call at a time. A file that cannot be read
// stops nothing; the errors come back joined, the first first. When ctx ends, what
// has not begun is left and ctx's error is among them.
func (c *Cache) Warm(ctx context.Context, names []string, step func(done int)) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	var (
		mu   sync.Mutex
		done int
		errs []error
	)
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if ctx.Err() != nil {
				return nil // reported below, once
			}
			_, err := c.entry(name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
			done++
			if step != nil {
				step(done)
			}
			return nil
		})
	}
	_ = g.Wait() // the workers' errors are in errs: Wait would keep the first alone
	return errors.Join(append(errs, ctx.Err())...)
}

// quiet is how long a file has to be left alone before it is read: an editor or
// a checkout writes in several steps.
const quiet = 100 * time.Millisecond

// Watch refreshes files in the background when they change, until ctx ends, so that
// who asks next need not wait for the parser. It is a hint and no more: whatever it
// misses, the stat of the next question finds. The error says that the system does
// not watch.
func (c *Cache) Watch(ctx context.Context, names []string) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch documents: %w", err)
	}
	defer w.Close()
	byPath := map[string]string{}
	for _, name := range names {
		path := filepath.Join(c.opts.Root, filepath.FromSlash(name))
		byPath[path] = name
		// The folder, not the file: editors rename a new file over the old one.
		if err := w.Add(filepath.Dir(path)); err != nil {
			return fmt.Errorf("watch documents: %w", err)
		}
	}
	changed := map[string]bool{}
	var settled <-chan time.Time // nil while nothing changed
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev, ok := <-w.Events:
			if name, ours := byPath[ev.Name]; ok && ours && ev.Op != fsnotify.Chmod {
				changed[name] = true
				settled = time.After(quiet)
			}
		case err := <-w.Errors: // events were lost: any file may have changed
			c.opts.Logger.Debug().Err(err).Msg("section cache: watch documents")
			for _, name := range names {
				changed[name] = true
			}
			settled = time.After(quiet)
		case <-settled:
			settled = nil
			if err := c.Warm(ctx, slices.Sorted(maps.Keys(changed)), nil); err != nil {
				c.opts.Logger.Debug().Err(err).Msg("section cache: refresh documents")
			}
			clear(changed)
		}
	}
}
