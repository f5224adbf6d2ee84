package sections

import (
	"context"
	"errors"
	"runtime"
	"sync"

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
