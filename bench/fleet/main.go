package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
)

// A program is the command as pgtest runs it: it removes the servers at the end.
type program struct {
	out   string
	only  string
	quick bool
}

func main() {
	if text := os.Getenv(ordersVar); text != "" {
		if err := runner(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var p program
	flag.StringVar(&p.out, "out", "", "the file to write; none means standard output")
	flag.BoolVar(&p.quick, "quick", false, "little of each, in a minute: too little for its figures to count")
	flag.StringVar(&p.only, "only", "", "one part: sides, load, takeover or memory")
	flag.Parse()
	os.Exit(pgtest.Main(&p))
}

// Run returns the exit code.
func (p *program) Run() int {
	if err := p.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (p *program) run() (err error) {
	b := &bench{size: full}
	if p.quick {
		b.size = quick
	}
	defer b.end(&err)
	if b.dir, err = os.MkdirTemp("", "lopen-fleet-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := os.Chmod(b.dir, 0o711); err != nil { // the user of the server passes through
		return err
	}
	fmt.Fprint(&b.page, beginning)
	for _, part := range []struct {
		name    string
		measure func() error
	}{{"sides", b.sides}, {"load", b.load}, {"takeover", b.takeover}, {"memory", b.memory}} {
		if p.only != "" && p.only != part.name {
			continue
		}
		begun := time.Now()
		err := part.measure()
		fmt.Fprintf(os.Stderr, "%s: %v\n", part.name, short(time.Since(begun)))
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if p.only == "" {
		b.paper()
	}
	if p.out == "" {
		_, err = io.Copy(os.Stdout, &b.page)
		return err
	}
	return os.WriteFile(p.out, b.page.Bytes(), 0o644)
}

// Sizes say how much is measured.
type sizes struct {
	rounds           int           // of what works in turns
	turn             time.Duration // of a side in a round
	sessions         int           // of the three processes, and of the one whose memory is measured
	backlog          int           // tasks of each session that are done while the database is down
	idle, steady     time.Duration // how long the 1,000 sessions do nothing, and work
	paces            []time.Duration
	takeovers, large int // rounds, and MiB of messages
}

var (
	full = sizes{rounds: 11, turn: 500 * time.Millisecond, sessions: 1000, backlog: 30, idle: 20 * time.Second, steady: 20 * time.Second,
		paces: []time.Duration{10 * time.Second, 4 * time.Second}, takeovers: 7, large: 20}
	quick = sizes{rounds: 2, turn: 400 * time.Millisecond, sessions: 60, backlog: 20, idle: 2 * time.Second, steady: 3 * time.Second,
		paces: []time.Duration{time.Second}, takeovers: 2, large: 20}
)

// start starts a server like one that people have: it waits for its disk, which that of the sessions is.
func (b *bench) start() *pgtest.Server {
	return pgtest.Start(b, pgtest.Options{Folder: b.dir, Settings: map[string]string{
		"fsync": "on", "full_page_writes": "on", "shared_buffers": "128MB", "max_wal_size": "1GB",
	}})
}

// folder makes a folder of a name.
func (b *bench) folder(name string) (string, error) {
	dir := filepath.Join(b.dir, name)
	return dir, os.MkdirAll(dir, 0o700)
}

// A failure is what ends a program that uses pgtest outside of a test.
type failure struct{ error }

// Methods of testing.TB, as far as pgtest calls them.

func (b *bench) Helper()           {}
func (b *bench) Cleanup(fn func()) { b.cleanups = append(b.cleanups, fn) }
func (b *bench) Failed() bool      { return false }
func (b *bench) Skip(args ...any)  { b.Fatal(args...) }
func (b *bench) Fatal(args ...any) { panic(failure{errors.New(fmt.Sprint(args...))}) }
func (b *bench) Error(args ...any) { fmt.Fprintln(os.Stderr, args...) }

// end cleans up, and turns a failure of pgtest into an error.
func (b *bench) end(err *error) {
	why := recover()
	for _, fn := range slices.Backward(b.cleanups) {
		fn()
	}
	switch f, ok := why.(failure); {
	case ok:
		*err = f.error
	case why != nil:
		panic(why)
	}
}

var _ testing.TB = (*bench)(nil)
