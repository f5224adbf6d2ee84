package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// worked makes a session of eight records, snapshots at 2, 4, 6 and 8, and the
// readable files of record upto. Each record has a task and an iteration more.
func worked(t *testing.T, store *lifecycle.Store, upto int) (session.ID, string) {
	t.Helper()
	store = storeWith(t, filepath.Dir(store.Path()), lifecycle.Policy{Interval: 2})
	sess := create(t, store, "auth")
	dir := path(store, "sessions", sess.ID().String())
	before := map[string]string{}
	for n := 2; n <= 8; n++ {
		require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
			e.Header().TurnCount, e.Header().Status = n, session.StatusPaused
			e.Put(session.Task{ID: fmt.Sprintf("t%d", n), Kind: session.KindTask, State: session.TaskComplete})
			e.SetRoots(append(sess.State().Roots(), fmt.Sprintf("t%d", n)))
			e.AppendIteration(session.Iteration{Task: fmt.Sprintf("t%d", n), StartedAt: day, OutputTokens: 10})
			return nil
		}))
		require.NoError(t, sess.Flush(t.Context()))
		if n == upto {
			before = tree(t, dir)
		}
	}
	require.NoError(t, sess.Close(t.Context()))
	for _, name := range []string{"state.json", "metrics.json"} {
		write(t, filepath.Join(dir, name), before[name])
	}
	return sess.ID(), dir
}

// dropRecord takes a line out of a journal; the header is line 0, so that the
// number is the record's.
func dropRecord(t *testing.T, dir string, seq int) {
	t.Helper()
	file := filepath.Join(dir, "journal-1-1.jsonl")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := splitLines(data)
	at := lineOf(lines, seq)
	lines[at] = []byte(strings.Repeat("x", len(lines[at])-1) + "\n")
	write(t, file, joinLines(lines))
}

func gone(names ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		for _, name := range names {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
}

// cut ends state.json before a piece of it, and removes what is named.
func cut(before string, names ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		gone(names...)(t, dir)
		data, err := os.ReadFile(filepath.Join(dir, "state.json"))
		require.NoError(t, err)
		whole, _, ok := strings.Cut(string(data), before)
		require.True(t, ok, "%s", data)
		write(t, filepath.Join(dir, "state.json"), whole)
	}
}

func TestRecoverStrategies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		upto     int // record of the readable files
		spoil    func(t *testing.T, dir string)
		strategy string
		seq      uint64 // that is reached; 0 where it comes to nothing
		base     string
		done     int
		its      int
		want     string // in what was lost, or in the error
	}{
		"newest, all is well":   {8, nil, "latest-checkpoint", 8, "history/1-8.json.zst", 7, 7, "the log of its past"},
		"newest, damaged state": {8, gone("state.json"), "latest-checkpoint", 8, "history/1-8.json.zst", 7, 7, "state.json is missing"},
		"newest, and a hole": {4, func(t *testing.T, dir string) {
			gone("history/1-6.json.zst", "history/1-8.json.zst")(t, dir)
			dropRecord(t, dir, 7)
		}, "latest-checkpoint", 6, "history/1-4.json.zst", 5, 5, "records 7 to 8"},
		"newest is state.json":  {7, gone("history/1-8.json.zst"), "latest-checkpoint", 8, "state.json", 7, 7, ""},
		"newest, none":          {8, gone("state.json", "history"), "latest-checkpoint", 0, "", 0, 0, "no snapshot of it can be read: try --strategy journal"},
		"newest, then records":  {2, gone("history/1-8.json.zst", "history/1-6.json.zst"), "latest-checkpoint", 8, "history/1-4.json.zst", 7, 7, ""},
		"a number":              {8, nil, "checkpoint=4", 4, "history/1-4.json.zst", 3, 3, "records 5 to 8"},
		"no such number":        {8, nil, "checkpoint=5", 0, "", 0, 0, `it has no checkpoint "5" that can be read; its snapshots: 8, 8, 6, 4, 2`},
		"a way out":             {8, nil, "checkpoint=../..", 0, "", 0, 0, "no checkpoint"},
		"a checkpoint":          {8, note(5), "checkpoint=1", 5, "history/1-4.json.zst", 4, 4, "records 6 to 8"},
		"a checkpoint, journal": {8, func(t *testing.T, dir string) { note(5)(t, dir); gone("history")(t, dir) }, "checkpoint=1", 5, "nothing", 4, 4, "records 6 to 8"},
		"a checkpoint, damaged": {8, note(0), "checkpoint=1", 0, "", 0, 0, "no checkpoint"},
		"a checkpoint, no record": {4, func(t *testing.T, dir string) {
			note(7)(t, dir)
			gone("history")(t, dir)
			dropRecord(t, dir, 6)
		}, "checkpoint=1", 0, "", 0, 0, "record 7 of checkpoint 1 cannot be reached"},
		"journal":                    {8, gone("state.json", "metrics.json", "history"), "journal", 8, "nothing", 7, 7, "state.json is missing"},
		"journal, a hole":            {8, func(t *testing.T, dir string) { dropRecord(t, dir, 5) }, "journal", 4, "nothing", 3, 3, "records 5 to 8"},
		"journal, no begin":          {8, func(t *testing.T, dir string) { dropRecord(t, dir, 1) }, "journal", 0, "", 0, 0, "the first record of its journal is missing"},
		"the better: newest":         {8, func(t *testing.T, dir string) { dropRecord(t, dir, 5) }, "", 8, "history/1-8.json.zst", 7, 7, ""},
		"the better: journal":        {8, gone("state.json", "history"), "", 8, "nothing", 7, 7, ""},
		"the better: none":           {8, gone("state.json", "metrics.json", "history", "journal-1-1.jsonl"), "", 0, "", 0, 0, "try --strategy latest-checkpoint, or partial"},
		"the better: partial, alone": {8, func(t *testing.T, dir string) { gone("metrics.json", "history")(t, dir); dropRecord(t, dir, 1) }, "", 8, "state.json without metrics.json", 7, 7, "metrics.json is missing"},
		"the better: partial, hole":  {4, func(t *testing.T, dir string) { gone("history")(t, dir); dropRecord(t, dir, 6) }, "", 8, "state.json", 6, 6, "record 6"},
		"the better: no header":      {2, func(t *testing.T, dir string) { gone("history")(t, dir); dropRecord(t, dir, 0) }, "", 8, "state.json", 7, 7, ""},
		"the better: cut, too much":  {8, cut(`"id":"t4"`, "history/1-8.json.zst", "journal-1-1.jsonl"), "", 6, "history/1-6.json.zst", 5, 5, "state.json: damaged"},
		"the better: a false number": {8, func(t *testing.T, dir string) {
			name := filepath.Join(dir, "state.json")
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			write(t, name, strings.Replace(string(data), `"seq":8`, `"seq":9`, 1))
		}, "", 8, "history/1-8.json.zst", 7, 7, "state.json"},
		"partial, a hole":            {4, func(t *testing.T, dir string) { gone("history")(t, dir); dropRecord(t, dir, 6) }, "partial", 8, "state.json", 6, 6, "record 6"},
		"partial, no metrics":        {8, gone("metrics.json", "history"), "partial", 8, "state.json without metrics.json", 7, 7, "metrics.json is missing"},
		"partial, no iterations":     {8, func(t *testing.T, dir string) { gone("metrics.json", "history")(t, dir); dropRecord(t, dir, 3) }, "partial", 8, "state.json without metrics.json", 7, 6, "1 of 7 starts of the command"},
		"partial, no last iteration": {8, func(t *testing.T, dir string) { gone("metrics.json", "history")(t, dir); dropRecord(t, dir, 8) }, "partial", 8, "state.json without metrics.json", 7, 6, "1 of 7 starts of the command"},
		"partial, no header":         {8, func(t *testing.T, dir string) { gone("state.json", "history")(t, dir); dropRecord(t, dir, 0) }, "partial", 8, "nothing", 7, 7, ""},
		"partial, the snapshot":      {2, func(t *testing.T, dir string) { gone("state.json", "journal-1-1.jsonl")(t, dir) }, "partial", 8, "history/1-8.json.zst", 7, 7, ""},
		"partial, cut, a snapshot":   {8, cut(`"id":"t5"`, "history/1-8.json.zst", "journal-1-1.jsonl"), "partial", 6, "history/1-6.json.zst", 5, 5, "state.json: damaged"},
		"partial, cut, the journal":  {8, cut(`"id":"t5"`, "history"), "partial", 8, "nothing", 7, 7, "state.json"},
		"partial, cut in the header": {8, cut(`,"createdAt"`, "history", "journal-1-1.jsonl"), "partial", 0, "", 0, 0, "nothing of it can be read"},
		"partial, nothing":           {8, gone("state.json", "metrics.json", "history", "journal-1-1.jsonl"), "partial", 0, "", 0, 0, "nothing of it can be read"},
		"unknown":                    {8, nil, "magic", 0, "", 0, 0, "give latest-checkpoint, checkpoint=CP, journal or partial"},
		"a checkpoint of no name":    {8, nil, "checkpoint=", 0, "", 0, 0, "no checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			id, dir := worked(t, store, c.upto)
			if c.spoil != nil {
				c.spoil(t, dir)
			}
			before := tree(t, dir)
			r, err := store.Recover(t.Context(), id.String(), c.strategy, true)
			if c.seq == 0 {
				require.Error(t, err)
				require.ErrorContains(t, err, c.want)
				require.NotNil(t, r)
				_, err = store.Recover(t.Context(), id.String(), c.strategy, false)
				require.Error(t, err)
				require.Equal(t, before, tree(t, dir))
				infos, err := store.List()
				require.NoError(t, err)
				require.Len(t, infos, 1)
				return
			}
			require.NoError(t, err)
			require.True(t, r.ID.IsZero(), "it only looked")
			require.Equal(t, c.seq, r.Seq)
			require.True(t, strings.HasSuffix(r.Base, c.base), r.Base)
			require.Contains(t, strings.Join(r.Lost, "\n"), c.want)
			require.Equal(t, r.Strategy == repair.Partial, strings.Contains(strings.Join(r.Advice, "\n"), "it is partial"))
			r, err = store.Recover(t.Context(), id.String(), c.strategy, false)
			require.NoError(t, err)
			st, _, err := store.Read(r.ID)
			require.NoError(t, err)
			require.Equal(t, c.done, st.Progress().Done)
			require.Equal(t, c.its, st.NumIterations())
			h := st.Header()
			require.Equal(t, session.Lineage{Kind: session.LineageRecovered, From: id, Seq: c.seq}, *h.Lineage)
			require.True(t, h.RequiresValidation)
			require.Equal(t, before, tree(t, dir), "the damaged session stays as it is")
			report, err := store.Verify(r.ID)
			require.NoError(t, err)
			require.Equal(t, repair.Intact, report.Condition)
			require.True(t, report.RequiresValidation)
		})
	}
}

// A recovery reports the results that the other strategies would have.
func TestRecoverNamesTheOtherStrategies(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id, dir := worked(t, store, 4)
	gone("history")(t, dir)
	dropRecord(t, dir, 6)
	r, err := store.Recover(t.Context(), id.String(), "", true)
	require.NoError(t, err)
	require.Equal(t, repair.Partial, r.Strategy)
	require.Equal(t, []string{
		"latest-checkpoint: record 5, from state.json: 4 of 4 tasks are done, 4 starts of the command",
		"journal: record 5, from nothing: 4 of 4 tasks are done, 4 starts of the command",
	}, r.Others)
	r, err = store.Recover(t.Context(), id.String(), repair.JournalAlone, true)
	require.NoError(t, err)
	require.Equal(t, "partial: record 8, from state.json: 6 of 6 tasks are done, 6 starts of the command; without record 6", r.Others[1])
	gone("state.json")(t, dir)
	r, err = store.Recover(t.Context(), id.String(), "", true)
	require.NoError(t, err)
	require.Contains(t, r.Others[0], "latest-checkpoint: nothing: ")
}

// note writes the checkpoint of a record; of a record 0, half of one.
func note(seq uint64) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		project := filepath.Dir(filepath.Dir(filepath.Dir(dir)))
		var dirs []writer.FS
		for _, name := range []string{"checkpoints", "blobs", ".."} {
			name = filepath.Join(project, ".lopen", name)
			require.NoError(t, os.MkdirAll(name, 0o700))
			dir, err := writer.OpenFS(name)
			require.NoError(t, err)
			defer dir.Close()
			dirs = append(dirs, dir)
		}
		store := checkpoint.New(dirs[0], checkpoint.MainTree, blob.New(dirs[1]), dirs[2], checkpoint.Options{})
		_, err := store.Create(t.Context(), checkpoint.Meta{Session: filepath.Base(dir), Seq: seq, At: day, Reason: checkpoint.Manual})
		require.NoError(t, err)
		if seq == 0 {
			file := filepath.Join(project, ".lopen", "checkpoints", "main.jsonl")
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			write(t, file, string(data[:len(data)/2]))
		}
	}
}

func TestRecoverFromQuarantine(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id, dir := worked(t, store, 8)
	ruin(t, dir)
	write(t, filepath.Join(dir, ".tmp-state.json-abc"), "half")
	write(t, filepath.Join(dir, "history", ".tmp-1-10.json.zst-abc"), "half")
	r, err := store.Recover(t.Context(), id.String(), "", true)
	require.NoError(t, err)
	found := strings.Join(r.Leftovers, "\n")
	require.Contains(t, found, ".tmp-state.json-abc is of a write that did not end")
	require.Contains(t, found, "history/.tmp-1-10.json.zst-abc is of a write that did not end")
	require.Contains(t, found, "damage: ")
	_, err = store.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	quarantined, err := filepath.Glob(path(store, "corrupted", id.String()+"-*Z"))
	require.NoError(t, err)
	require.Len(t, quarantined, 1)
	before := tree(t, quarantined[0])
	for _, name := range []string{id.String(), filepath.Base(quarantined[0])} {
		r, err := store.Recover(t.Context(), name, "", false)
		require.NoError(t, err)
		require.Equal(t, "corrupted/"+filepath.Base(quarantined[0]), r.Where)
		require.Equal(t, before, tree(t, quarantined[0]))
		require.Equal(t, id.Day, r.ID.Day)
		require.NotEqual(t, id, r.ID)
		latest, err := store.Resolve("latest")
		require.NoError(t, err)
		require.Equal(t, r.ID, latest)

		var file struct {
			From, Session, Strategy, Base string
			Seq                           uint64
			Recovered, NotRecovered       []string
			Rules                         []session.Finding
			Advice                        []string
		}
		data, err := os.ReadFile(path(store, "sessions", r.ID.String(), "recovery.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &file))
		require.Equal(t, id.String(), file.From)
		require.Equal(t, r.ID.String(), file.Session)
		require.EqualValues(t, 8, file.Seq)
		require.NotEmpty(t, file.Recovered)
		require.NotEmpty(t, file.NotRecovered)
		require.Equal(t, "whole", file.Rules[0].Rule)
		require.Contains(t, file.Advice[0], r.ID.String())

		require.NoError(t, store.Accept(t.Context(), r.ID))
		st, seq, err := store.Read(r.ID)
		require.NoError(t, err)
		require.False(t, st.Header().RequiresValidation)
		require.NoError(t, store.Accept(t.Context(), r.ID))
		_, again, err := store.Read(r.ID)
		require.NoError(t, err)
		require.Equal(t, seq, again, "what does not require it is left alone")
	}
	for _, name := range []string{"nobody", "", "auth-20260214-99", "../corrupted"} {
		_, err := store.Recover(t.Context(), name, "", true)
		if name != "" {
			require.ErrorIs(t, err, lifecycle.ErrNotFound, name)
		}
	}
}

// The module's plan gives the names of tasks that could not be read.
func TestRecoverPartialNamesWhatThePlanHas(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	var todo strings.Builder
	for n := 2; n <= 30; n++ {
		fmt.Fprintf(&todo, "- [ ] t%d\n", n)
	}
	require.NoError(t, store.CreatePlan("auth", []byte(todo.String())))
	id, dir := worked(t, store, 8)
	gone("state.json", "history/1-6.json.zst", "history/1-8.json.zst", "journal-1-1.jsonl")(t, dir)
	r, err := store.Recover(t.Context(), id.String(), repair.Partial, true)
	require.NoError(t, err)
	lost := strings.Join(r.Lost, "\n")
	require.NotContains(t, lost, "task t4,")
	require.Contains(t, lost, "task t5, which is in the plan")
	require.Contains(t, lost, "16 more tasks of the plan", "of 26 ten are named")
	require.Contains(t, strings.Join(r.Advice, "\n"), "look at the boxes in .lopen/modules/auth/plan.md")
}

// The new session goes by the name of the damaged one. What is said of that is no
// reason to lose the session.
func TestRecoverKeepsNameAndPin(t *testing.T) {
	t.Parallel()
	want := lifecycle.Meta{Name: "my week", Pinned: true}
	store := initStore(t)
	id, dir := worked(t, store, 8)
	require.NoError(t, store.SetMeta(t.Context(), id, func(m *lifecycle.Meta) error { *m = want; return nil }))
	r, err := store.Recover(t.Context(), id.String(), "", false)
	require.NoError(t, err)
	for _, each := range []session.ID{r.ID, id} {
		meta, err := store.Meta(each)
		require.NoError(t, err)
		require.Equal(t, want, meta)
	}
	write(t, filepath.Join(dir, "meta.json"), "{")
	r, err = store.Recover(t.Context(), id.String(), "", false)
	require.NoError(t, err)
	require.Contains(t, strings.Join(r.Lost, "\n"), "its name and whether it is pinned: ")
	meta, err := store.Meta(r.ID)
	require.NoError(t, err)
	require.Zero(t, meta)
}

// A held session is not recovered: it is not damaged for whoever holds it. One whose
// holder died says whose lock it is.
func TestRecoverOfHeldAndCrashed(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	holder := start(t, "hold", filepath.Dir(store.Path()))
	id := holder.line(t)
	_, err := store.Recover(t.Context(), id, "", true)
	require.ErrorIs(t, err, lifecycle.ErrBusy)
	require.NoError(t, holder.Process.Kill())
	_ = holder.Wait()
	r, err := store.Recover(t.Context(), id, "", false)
	require.NoError(t, err)
	require.Contains(t, strings.Join(r.Leftovers, "\n"), "which is gone and did not close the session")
	st, _, err := store.Read(r.ID)
	require.NoError(t, err)
	require.Equal(t, session.StatusPaused, st.Status())
	require.Equal(t, session.ExitCrashed, st.Header().ExitReason)
	require.Equal(t, 20, st.Header().TurnCount)
}
