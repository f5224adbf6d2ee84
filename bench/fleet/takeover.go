package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
)

// said is how many bytes a message of a large session has.
const said = 8 << 10

// takeover measures how long another machine takes to continue a session.
func (b *bench) takeover() error {
	ctx := context.Background()
	url := b.start().Create("takeover")
	if err := b.large(ctx, url); err != nil {
		return err
	}
	var parts [5][]time.Duration // Find, Pull, Open, all of these, and the floor
	for i := range b.size.takeovers {
		took, err := b.takes(ctx, url, fmt.Sprintf("taker %d", i))
		if err != nil {
			return err
		}
		floor, err := readAll(ctx, url)
		if err != nil {
			return err
		}
		for n, d := range append(took, took[0]+took[1]+took[2], floor) {
			parts[n] = append(parts[n], d)
		}
	}
	fmt.Fprintf(&b.page, takeoverText, tasks, b.size.large, b.size.takeovers)
	for i, name := range []string{"Find", "Pull", "Open", "**all**", "one SELECT of the records"} {
		slices.Sort(parts[i])
		fmt.Fprintf(&b.page, "| %s | %s | %s |\n", name, ms(at(parts[i], 0.5)), ms(parts[i][len(parts[i])-1]))
	}
	return nil
}

// large ships a large session, and gives its lease back.
func (b *bench) large(ctx context.Context, url string) error {
	dir, err := b.folder("large")
	if err != nil {
		return err
	}
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	if err != nil {
		return err
	}
	defer store.Close(ctx)
	f, err := open(url, "first")
	if err != nil {
		return err
	}
	defer f.Close()
	sess, err := create(store)
	if err != nil {
		return err
	}
	shipped, err := f.Ship(store, sess)
	if err != nil {
		return err
	}
	for n := range b.size.large << 20 / said {
		if err := say(shipped, said, n); err != nil {
			return err
		}
		if n%64 == 0 {
			if err := step(shipped, n, true); err != nil {
				return err
			}
			if err := shipped.Sync(ctx); err != nil {
				return err
			}
		}
	}
	if err := shipped.Replicated(ctx); err != nil {
		return err
	}
	return shipped.Close(ctx)
}

// takes continues the session in a new folder.
func (b *bench) takes(ctx context.Context, url, name string) (took []time.Duration, err error) {
	dir, err := b.folder(name)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	if err != nil {
		return nil, err
	}
	defer store.Close(ctx)
	f, err := open(url, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var x fleet.Found
	var p fleet.Pulled
	for _, part := range []func() error{
		func() (err error) { x, err = f.Find(ctx, module); return err },
		func() (err error) { p, err = f.Pull(ctx, store, &x); return err },
		func() (err error) { _, err = store.Open(p.ID); return err },
	} {
		begun := time.Now()
		if err := part(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// readAll reads the records as one answer, and does nothing with them.
func readAll(ctx context.Context, url string) (time.Duration, error) {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer c.Close(ctx)
	begun := time.Now()
	all, err := c.Query(ctx, `SELECT bytes FROM lopen_data.records ORDER BY session, seq`)
	if err != nil {
		return 0, err
	}
	for all.Next() {
		_ = all.RawValues()
	}
	return time.Since(begun), all.Err()
}
