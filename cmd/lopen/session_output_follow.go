package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/writer/plain"
)

// newest prints the newest of the attempts that are asked for.
func (o *outputCall) newest() error {
	held := o.held()
	all, err := o.attempts()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return o.noOutput()
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

// open opens a stored file of an attempt, and prints which attempt it is.
func (o *outputCall) open(k output.Stored, running bool) (*output.Reader, error) {
	r, err := o.store.ReadOutput(o.id, k.Name, o.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fmt.Fprintln(o.stderr, outputHeader(k, running))
	return r, err
}

func outputHeader(k output.Stored, running bool) string {
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

// A follower prints the attempts of a session while they are made.
type follower struct {
	*outputCall
	r  *output.Reader // of the attempt called at; nil for none
	at string
}

// follow prints the newest attempt as it grows, and each attempt after it, until nobody holds
// the session any more.
func (o *outputCall) follow(ctx context.Context) (err error) {
	f := follower{outputCall: o}
	defer func() { err = errors.Join(err, f.close()) }()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		held := o.held() // before looking: what a run left that ends meanwhile is seen
		n, err := f.step(held)
		switch {
		case err != nil:
			return err
		case !held && n == 0:
			return o.noOutput()
		case !held:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// step prints what is new, and returns how many attempts there are.
func (f *follower) step(held bool) (int, error) {
	all, err := f.attempts()
	if err != nil {
		return 0, err
	}
	later := all[max(len(all)-1, 0):] // to begin with, and where at was pruned
	if i := slices.IndexFunc(all, func(k output.Stored) bool { return k.Name == f.at }); i >= 0 {
		later = all[i+1:]
	}
	if err := f.copy(); err != nil {
		return 0, err
	}
	for _, k := range later {
		next, err := f.open(k, held)
		if errors.Is(err, fs.ErrNotExist) {
			if k.Outcome != "" { // else it has just begun
				f.at = k.Name
			}
			continue
		}
		if err != nil {
			return 0, err
		}
		_ = f.close()
		f.r, f.at = next, k.Name
		if err := f.copy(); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// copy prints what has been added to the attempt.
func (f *follower) copy() error {
	if f.r == nil {
		return nil
	}
	_, err := io.Copy(f.stdout.Output(), f.r)
	return err
}

func (f *follower) close() error {
	if f.r == nil {
		return nil
	}
	return f.r.Close()
}
