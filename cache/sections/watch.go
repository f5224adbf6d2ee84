package sections

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

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
