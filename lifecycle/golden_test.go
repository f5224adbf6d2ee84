package lifecycle_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

var updateGolden = flag.Bool("update-golden", false, "record anew which bytes TestGoldenBytes expects")

// TestGoldenBytes writes a store in which each kind of file occurs, with a clock and
// random numbers that are the same in every run, and compares every byte with what was
// recorded. Not part of it are the locks, which name a process; the ballast; the
// fingerprints, which have the disk's own times; and packs, whose order is that in which
// the workers were done.
//
// It runs in a process of its own: what other tests draw would change what it draws.
func TestGoldenBytes(t *testing.T) {
	const alone = "LIFECYCLE_TEST_ALONE"
	if os.Getenv(alone) == "" {
		t.Parallel()
		cmd := exec.Command(os.Args[0], "-test.run=^TestGoldenBytes$", fmt.Sprintf("-update-golden=%v", *updateGolden))
		cmd.Env = append(os.Environ(), alone+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	cryptotest.SetGlobalRandom(t, 1)
	project := t.TempDir()
	writeStore(t, project)
	got := dump(t, filepath.Join(project, ".lopen"))
	golden := filepath.Join("testdata", "bytes.golden")
	if *updateGolden {
		require.NoError(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func writeStore(t *testing.T, project string) {
	t.Helper()
	ctx := t.Context()
	file := func(name, content string) {
		name = filepath.Join(project, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		write(t, name, content)
		require.NoError(t, os.Chtimes(name, day, day))
	}
	file("main.go", "package main\n")
	file("docs/read.md", "# Read\n")
	at := day // looked at by the writer goroutine as well: it is moved after a Sync only
	store, _, err := lifecycle.Init(project, lifecycle.Options{Now: func() time.Time { return at }, Policy: lifecycle.Policy{Interval: 2, Iterations: true, Retention: 2}})
	require.NoError(t, err)
	store.ShowWhenAsked()
	require.NoError(t, store.SetConfig([]byte("{\"unit\":\"component\"}\n")))
	require.NoError(t, store.CreatePlan("auth", []byte("# Plan\n- [ ] one\n")))
	s := create(t, store, "auth")
	change := func(trigger session.Trigger, f func(e *session.Edit)) {
		t.Helper()
		require.NoError(t, s.Change(trigger, func(e *session.Edit) error { f(e); return nil }))
		require.NoError(t, s.Sync(ctx))
	}
	change(session.TriggerPhaseChanged, func(e *session.Edit) {
		h := e.Header()
		h.Phase, h.Step, h.Component, h.ActiveTask = session.PhaseBuilding, session.StepIterateThroughTasks, "log in", "a"
		h.TurnCount, h.TotalCostUSD, h.AgentName = 3, 1.25, "claude"
		h.Data = strictjson.Value(`{"rating":4.50,"items":["x",null,true]}`)
		h.Git = session.Git{Head: "0123456789abcdef0123456789abcdef01234567", Branch: "main", Dirty: true}
		e.Put(session.Task{ID: "m", Kind: session.KindModule, Name: "Module", State: session.TaskInProgress, Children: []string{"a", "b"}})
		e.Put(session.Task{ID: "a", Parent: "m", Kind: session.KindTask, Name: "A \u2028 \"quoted\" <&> \\ ü", State: session.TaskFailed,
			Attempts: 1, LastError: "exit 1\n\ttab", StartedAt: day, Log: []session.Attempt{{Number: 1, StartedAt: day, EndedAt: day.Add(time.Minute), Exit: 1}}})
		e.Put(session.Task{ID: "b", Parent: "m", Kind: session.KindTask, Name: "B", State: session.TaskPending, DependsOn: []string{"a"}, Box: session.BoxOpen})
		e.SetRoots([]string{"m"})
	})
	for i, role := range []string{session.RoleSystem, session.RoleUser, session.RoleAssistant} {
		require.NoError(t, s.Append(&session.Message{ID: fmt.Sprint("m", i), Role: role, Content: session.Text("hello <b> \u2029"), Time: day}))
		require.NoError(t, s.Sync(ctx)) // each is a batch of its own
	}
	require.NoError(t, s.AppendEvent(strictjson.Value(`{"type":"tool","n":1.50}`)))
	require.NoError(t, s.Sync(ctx))
	_, _, err = s.Checkpoint(ctx, checkpoint.BeforeTask, "a")
	require.NoError(t, err)
	file("main.go", "package main // changed\n")
	after, _, err := s.Checkpoint(ctx, checkpoint.AfterTask, "a")
	require.NoError(t, err)
	require.NoError(t, s.PinCheckpoint(ctx, after.ID, true))
	file("new.txt", "new\n")
	w, err := s.Output(1, output.Attempt{Task: "a", Attempt: 1, Begun: day})
	require.NoError(t, err)
	w.Note("line")
	w.Prompt([]byte("do it\n"))
	require.NoError(t, w.Close(record.Failed, "exit 1", true))
	require.NoError(t, s.Record(record.Attempt{Task: "a", Attempt: 1, Iteration: 1, Command: []string{"claude", "-p"}, StartedAt: day,
		EndedAt: day.Add(time.Minute), Exit: 1, Input: 5, CostUSD: 0.125, Agent: "claude", Failure: "exit 1", Then: record.Failed}))
	require.NoError(t, s.Sync(ctx))
	for i := range 4 {
		change(session.TriggerStepCompleted, func(e *session.Edit) {
			e.AppendIteration(session.Iteration{Task: "a", Attempt: i + 1, StartedAt: day, InputTokens: 5, OutputTokens: 7, CostUSD: 0.1})
			e.Put(session.Task{ID: "c", Kind: session.KindComponent, Name: fmt.Sprint("C", i), State: session.TaskSkipped})
			e.SetRoots([]string{"m", "c"})
		})
	}
	_, err = s.Rewind(ctx, after.ID, rewind.Options{Files: true, State: true, Force: true})
	require.NoError(t, err)
	require.NoError(t, s.Flush(ctx))
	require.NoError(t, store.MoveCursor(s.ID(), "fleet", 3))
	require.NoError(t, store.SetMeta(ctx, s.ID(), func(m *lifecycle.Meta) error { m.Name, m.Pinned = "log in", true; return nil }))
	require.NoError(t, s.Pause(ctx, session.TriggerPaused, session.ExitInterrupted))
	require.NoError(t, s.Close(ctx))
	again, err := store.Open(s.ID()) // another epoch
	require.NoError(t, err)
	fork, err := store.Fork(ctx, s.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, again.Complete(ctx))
	require.NoError(t, again.Close(ctx))
	require.NoError(t, fork.Complete(ctx))
	require.NoError(t, fork.Close(ctx))
	at = day.Add(time.Hour)
	_, err = store.Prune(ctx, lifecycle.Retention{Age: time.Nanosecond}, false) // the fork goes to the trash; the other is pinned
	require.NoError(t, err)
	require.NoError(t, store.Close(ctx))
}

// dump is what is beneath dir, in order of the names: modes, and contents as text where
// they are text. What is compressed is unpacked: its bytes are the library's.
func dump(t *testing.T, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, name)
		require.NoError(t, err)
		rel = filepath.ToSlash(rel)
		info, err := d.Info()
		require.NoError(t, err)
		switch {
		case d.Name() == ".lock" || rel == "ballast" || strings.HasPrefix(rel, "cache/") || rel == "checkpoints/main.files":
			return nil
		case strings.HasSuffix(rel, ".pack"): // writer/blob has tests of its bytes
			return nil
		}
		fmt.Fprintf(&out, "-- %s %s", rel, info.Mode())
		switch {
		case d.IsDir():
			fmt.Fprintln(&out)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			require.NoError(t, err)
			fmt.Fprintf(&out, " -> %s\n", to)
		default:
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			contents(t, &out, rel, data)
		}
		return nil
	}))
	return out.Bytes()
}

// timed is what differs because of how long a commit took: the time itself, the offset of
// what follows, and the checksum of both; and when an attempt's output ended.
var timed = regexp.MustCompile(`("(?:commitUs|synced)":|"crc":"|"ended":")[-0-9a-fTZ:.]+`)

// entry matches one of the files that a note names.
var entry = regexp.MustCompile(`\{"file":"([^"]*)"[^}]*\}`)

// mergeNotes makes one of the notes that stand together: the last one, with all that they
// name. A status that changed is published at once, by a publication of its own or by that
// of the Close which comes next, so that there is one note or there are two.
func mergeNotes(log []byte) []byte {
	var out [][]byte
	all := map[string]string{} // what the notes name, by file
	for line := range bytes.Lines(log) {
		if !bytes.HasPrefix(line, []byte(`{"note":`)) {
			clear(all)
			out = append(out, line)
			continue
		}
		if len(all) > 0 {
			out = out[:len(out)-1]
		}
		for _, m := range entry.FindAllSubmatch(line, -1) {
			all[string(m[1])] = string(m[0])
		}
		begin, _, _ := bytes.Cut(line, []byte(`{"file":`))
		entries := slices.Sorted(maps.Values(all))
		out = append(out, fmt.Appendf(nil, "%s%s],\"crc\":\"*\"}\n", begin, strings.Join(entries, ",")))
	}
	return bytes.Join(out, nil)
}

func contents(t *testing.T, out *bytes.Buffer, name string, data []byte) {
	t.Helper()
	if strings.HasSuffix(name, ".zst") {
		z, err := zstd.NewReader(nil)
		require.NoError(t, err)
		defer z.Close()
		data, err = z.DecodeAll(data, nil)
		require.NoError(t, err)
	}
	filled := bytes.TrimRight(data, "\x00")
	switch {
	case strings.Contains(name, "journal-"), strings.HasSuffix(name, "/segments"), strings.Contains(name, "/output/"):
		fmt.Fprintln(out)
		filled = mergeNotes(timed.ReplaceAll(filled, []byte("$1*")))
	default:
		fmt.Fprintf(out, " %d bytes, %d of them zeros at the end\n", len(data), len(data)-len(filled))
	}
	if utf8.Valid(filled) && bytes.IndexByte(filled, 0) < 0 {
		out.Write(filled)
		if !bytes.HasSuffix(filled, []byte("\n")) {
			fmt.Fprintln(out)
		}
		return
	}
	out.WriteString(hex.Dump(filled))
}
