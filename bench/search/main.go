package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
)

func main() {
	lopen := flag.String("lopen", "bin/lopen", "the command")
	messages := flag.Int("messages", 1_000_000, "in all")
	sessions := flag.Int("sessions", 2000, "that have them")
	dir := flag.String("dir", "", "the project; made if it is not there, and kept")
	flag.Parse()
	if err := run(*lopen, *dir, *messages, *sessions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rounds is how often each side works.
const rounds = 5

// A side is a command that is measured.
type side struct {
	name  string
	argv  []string
	times []time.Duration
	cpu   []time.Duration
}

func (s *side) run(dir string) error {
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stderr = &out
	begun := time.Now()
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); err != nil && code != 1 { // 1: grep found nothing
		return fmt.Errorf("%s: %w: %s", s.name, err, out.Bytes())
	}
	s.times = append(s.times, time.Since(begun))
	s.cpu = append(s.cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	return nil
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2].Round(100 * time.Microsecond)
}

func (s *side) print(what string) {
	fmt.Printf("| %s | %s | %v | %v |\n", what, s.name, median(s.times), median(s.cpu))
}

func run(lopen, dir string, messages, sessions int) error {
	lopen, err := filepath.Abs(lopen)
	if err != nil {
		return err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "lopen-search"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	t := newTexts()
	if _, err := os.Stat(filepath.Join(dir, lifecycle.Dir)); err != nil {
		if err := fill(dir, t, messages, sessions); err != nil {
			return err
		}
	}
	logs, err := bytesBelow(filepath.Join(dir, lifecycle.Dir, "sessions"))
	if err != nil {
		return err
	}
	fmt.Printf("%d messages, %.0f MB of logs\n\n| work | side | time | CPU time |\n|---|---|---|---|\n", messages, float64(logs)/1e6)
	if err := build(lopen, dir, logs); err != nil {
		return err
	}
	for _, q := range t.queries() {
		if err := compare(lopen, dir, q); err != nil {
			return err
		}
	}
	return grown(lopen, dir, t)
}

// build measures the first search, which makes the index.
func build(lopen, dir string, logs int64) error {
	s := side{name: "lopen search", argv: []string{lopen, "search", "nothinglikeit"}}
	for range 2 {
		if err := os.RemoveAll(filepath.Join(dir, lifecycle.Dir, "cache", "search")); err != nil {
			return err
		}
		if err := s.run(dir); err != nil {
			return err
		}
	}
	slices.Sort(s.times)
	fmt.Printf("| build, %.1f MB/s of logs | %s | %v | %v |\n", float64(logs)/1e6/s.times[0].Seconds(), s.name, s.times[0].Round(time.Millisecond), s.cpu[0].Round(time.Millisecond))
	return nil
}

// compare measures one query.
func compare(lopen, dir string, q query) error {
	logs := filepath.Join(lifecycle.Dir, "sessions")
	sides := []*side{
		{name: "lopen search", argv: append([]string{lopen, "search", "--json"}, q.words...)},
		{name: "lopen version", argv: []string{lopen, "version"}},
		{name: "grep -rcF", argv: []string{"grep", "-rcF", q.plain(), logs}},
	}
	if path, err := exec.LookPath("rg"); err == nil {
		sides = append(sides, &side{name: "rg -cF", argv: []string{path, "-F", "--no-ignore", "--hidden", "-c", q.plain(), logs}})
	}
	for range rounds {
		for _, s := range sides {
			if err := s.run(dir); err != nil {
				return err
			}
		}
	}
	for _, s := range sides {
		s.print(q.what)
	}
	return nil
}

// grown measures the search after 10,000 new messages in 20 sessions.
func grown(lopen, dir string, t *texts) error {
	s := side{name: "lopen search", argv: append([]string{lopen, "search", "--json"}, t.queries()[1].words...)}
	for range rounds {
		if err := more(dir, t, 10_000, 20); err != nil {
			return err
		}
		if err := s.run(dir); err != nil {
			return err
		}
	}
	s.print("after 10,000 new messages")
	return nil
}

// fill makes a store whose logs are not compressed, so that grep can read them.
func fill(dir string, t *texts, messages, sessions int) error {
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	if err != nil {
		return err
	}
	defer store.Close(context.Background())
	if err := store.SetConfig([]byte(`{"compression":"none"}`)); err != nil {
		return err
	}
	for range sessions {
		sess, err := store.Create(context.Background(), "bench")
		if err == nil {
			err = say(sess, t, messages/sessions)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// more appends messages to some of the sessions.
func more(dir string, t *texts, messages, sessions int) error {
	store, err := lifecycle.Open(dir, lifecycle.Options{})
	if err != nil {
		return err
	}
	defer store.Close(context.Background())
	all, err := store.List()
	if err != nil {
		return err
	}
	for i := range sessions {
		sess, err := store.Open(all[i*len(all)/sessions].ID)
		if err == nil {
			err = say(sess, t, messages/sessions)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// say appends messages and closes the session.
func say(sess *lifecycle.Session, t *texts, n int) error {
	for i := range n {
		m := t.message(i)
		if err := sess.Append(&m); err != nil {
			return err
		}
		if i%100 == 99 {
			if err := sess.Sync(context.Background()); err != nil {
				return err
			}
		}
	}
	return sess.Close(context.Background())
}

func bytesBelow(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "journal") {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
