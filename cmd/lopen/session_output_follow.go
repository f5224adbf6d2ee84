package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/output"
)

// newest prints the newest of the attempts that are asked for.
func (o *outputCall) newest() error {
	held := o.held()
	all, err := o.kept()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return o.none()
	}
	k := all[len(all)-1]
	r, err := o.open(k, held)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("only its log is kept: the prompt and the raw output are of attempts that failed, with the setting transcript of all: %w", lifecycle.ErrNotFound)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(o.stdout.Output(), r)
	return errors.Join(err, r.Close())
}

// open opens what is kept of an attempt, and says which one it is.
func (o *outputCall) open(k output.Kept, running bool) (*output.Reader, error) {
	r, err := o.store.ReadOutput(o.id, k.Name, o.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fmt.Fprintln(o.stderr, outputHeader(k, running))
	return r, err
}

func outputHeader(k output.Kept, running bool) string {
	line := fmt.Sprintf("%s, attempt %d (iteration %d), begun %s: %s", plain.Line(k.Task), k.Attempt.Attempt, k.Iteration,
		k.Begun.Local().Format(time.DateTime), plain.Line(outcomeOf(k, running)))
	if !k.Ended.IsZero() {
		line += " after " + k.Ended.Sub(k.Begun).Round(time.Millisecond).String()
	}
	if k.Failure != "" {
		line += ": " + plain.Line(k.Failure)
	}
	return line
}

// followEvery is how often a follower looks for more.
const followEvery = 100 * time.Millisecond

// follow prints the newest attempt, goes on with what is printed, and with each attempt
// after it, until nobody holds the session any more.
func (o *outputCall) follow(ctx context.Context) (err error) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	var r *output.Reader // of the attempt called at
	at := ""
	defer func() {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	for {
		held := o.held() // before looking: what a run left that ends meanwhile is seen
		all, err := o.kept()
		if err != nil {
			return err
		}
		later := all[max(len(all)-1, 0):] // to begin with, and where at was pruned
		if i := slices.IndexFunc(all, func(k output.Kept) bool { return k.Name == at }); i >= 0 {
			later = all[i+1:]
		}
		if r != nil {
			if _, err := io.Copy(o.stdout.Output(), r); err != nil {
				return err
			}
		}
		for _, k := range later {
			next, err := o.open(k, held)
			if errors.Is(err, fs.ErrNotExist) {
				if k.Outcome != "" { // else it has just begun
					at = k.Name
				}
				continue
			}
			if err != nil {
				return err
			}
			if r != nil {
				_ = r.Close()
			}
			r, at = next, k.Name
			if _, err := io.Copy(o.stdout.Output(), r); err != nil {
				return err
			}
		}
		if !held && len(all) == 0 {
			return o.none()
		}
		if !held {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
