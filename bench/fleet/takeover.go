package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
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
	var cpu time.Duration
	for i := range b.size.takeovers {
		before := spent()
		took, err := b.takes(ctx, url, fmt.Sprintf("taker %d", i))
		cpu += spent() - before
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
	fmt.Fprintf(&b.page, "| CPU time of the process that takes over | %s | |\n", ms(cpu/time.Duration(b.size.takeovers)))
	return b.object(ctx, url)
}

// object measures how fast a large content is shipped: a file that a checkpoint has.
func (b *bench) object(ctx context.Context, url string) error {
	const mib = 128
	return b.machine(ctx, url, "object", func(dir string, store *lifecycle.Store, f *fleet.Fleet) error {
		sess, err := create(store)
		if err != nil {
			return err
		}
		content := make([]byte, mib<<20)
		_, _ = rand.Read(content) // it does not fail
		if err := os.WriteFile(filepath.Join(dir, "content"), content, 0o600); err != nil {
			return err
		}
		if _, _, err := sess.Checkpoint(ctx, checkpoint.Manual, ""); err != nil {
			return err
		}
		begun := time.Now()
		shipped, err := f.Ship(store, sess)
		if err == nil {
			err = shipped.Replicated(ctx)
		}
		if err != nil {
			return err
		}
		b.costs.objects = mib << 20 / time.Since(begun).Seconds()
		fmt.Fprintf(&b.page, "\nA file of %d MiB that a checkpoint has is shipped at %.0f MB a second.\n", mib, b.costs.objects/1e6)
		return shipped.Close(ctx)
	})
}

// machine runs fn as a machine of this name, with a folder that is removed afterwards.
func (b *bench) machine(ctx context.Context, url, name string, fn func(dir string, store *lifecycle.Store, f *fleet.Fleet) error) error {
	dir, err := b.folder(name)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	if err != nil {
		return err
	}
	defer store.Close(ctx)
	f, err := open(url, name)
	if err != nil {
		return err
	}
	defer f.Close()
	return fn(dir, store, f)
}

// spent is the CPU time of this process so far, in steps of 10 ms; 0 where that is not known.
func spent() time.Duration {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// large ships a large session, and gives its lease back.
func (b *bench) large(ctx context.Context, url string) error {
	return b.machine(ctx, url, "large", func(_ string, store *lifecycle.Store, f *fleet.Fleet) error {
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
	})
}

// takes continues the session in a new folder.
func (b *bench) takes(ctx context.Context, url, name string) (took []time.Duration, err error) {
	err = b.machine(ctx, url, name, func(_ string, store *lifecycle.Store, f *fleet.Fleet) error {
		var x fleet.Found
		var p fleet.Pulled
		for _, part := range []func() error{
			func() (err error) { x, err = f.Find(ctx, module); return err },
			func() (err error) { p, err = f.Pull(ctx, store, &x); return err },
			func() (err error) { _, err = store.Open(p.ID); return err },
		} {
			begun := time.Now()
			if err := part(); err != nil {
				return err
			}
			took = append(took, time.Since(begun))
		}
		return nil
	})
	return took, err
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
