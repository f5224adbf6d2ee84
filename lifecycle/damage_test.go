package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

var update = flag.Bool("update", false, "record the table of damages anew")

// goldenDamage was recorded from this project itself: go test ./lifecycle -run TestDamage$
// -update. It shows a change of what becomes of a damage and does not say which of the
// two is right; what must hold of every row whatever was recorded is in outcome.
const goldenDamage = "testdata/damage.golden"

// damages are the kinds of damage. Each is given a file's content and whether
// it is a journal, in which a line is spoilt and gets a checksum that fits, so that
// what is in it is reached.
var damages = []struct {
	name string
	do   func(t *testing.T, data []byte, journal bool) []byte
}{
	{"removed", nil},
	{"older copy", nil}, // of a file that was there when the session was young
	{"empty", func(*testing.T, []byte, bool) []byte { return nil }},
	{"cut", func(_ *testing.T, data []byte, _ bool) []byte { return data[:len(data)/2] }},
	{"flipped bit", func(_ *testing.T, data []byte, _ bool) []byte {
		data[len(data)/2] ^= 1
		return data
	}},
	{"NUL block", func(_ *testing.T, data []byte, _ bool) []byte {
		from := len(data) / 3
		clear(data[from:min(len(data), from+512)])
		return data
	}},
	{"random bytes", func(_ *testing.T, data []byte, _ bool) []byte {
		rng := rand.New(rand.NewPCG(6, 7))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		return data
	}},
	{"100,000 levels", func(t *testing.T, data []byte, journal bool) []byte {
		deep := `"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
		if journal {
			return spoilLine(t, data, func(line string) string { return strings.Replace(line, `"ops":`, deep+`,"ops":`, 1) })
		}
		return []byte(`{"schemaVersion":1,` + deep + "}\n")
	}},
	{"duplicate keys", func(t *testing.T, data []byte, journal bool) []byte {
		if journal {
			return spoilLine(t, data, func(line string) string {
				return strings.Replace(line, `"ops":`, `"at":"2026-02-14T09:30:00Z","ops":`, 1)
			})
		}
		return append([]byte(`{"schemaVersion":2,`), data[min(1, len(data)):]...)
	}},
	{"bad UTF-8", func(t *testing.T, data []byte, journal bool) []byte {
		if journal {
			return spoilLine(t, data, func(line string) string { return strings.Replace(line, `"name":"`, "\"name\":\"\xff\xfe", 1) })
		}
		if !bytes.Contains(data, []byte(`":"`)) {
			return append(data, "\xff\xfe"...)
		}
		return bytes.Replace(data, []byte(`":"`), []byte("\":\"\xff\xfe"), 1)
	}},
}

// spoilLine changes the last record of a journal that has a task with a name.
func spoilLine(t *testing.T, data []byte, fn func(string) string) []byte {
	lines := splitLines(data)
	for i, line := range slices.Backward(lines) {
		if bytes.Contains(line, []byte(`"name":"`)) {
			lines[i] = []byte(reseal(t, fn(string(line))))
			require.NotEqual(t, string(line), string(lines[i]))
			return []byte(joinLines(lines))
		}
	}
	t.Fatal("no record has a task")
	return nil
}

// damaged is a project with a session that has every file, and another one. The
// returned files lie in the first one's folder, or next to it.
func damaged(t *testing.T) (project string, bad, good session.ID, files []string) {
	t.Helper()
	project = t.TempDir()
	store := storeWith(t, project, lifecycle.Policy{Interval: 2})
	good = made(t, store, "auth")
	sess := create(t, store, "auth")
	bad = sess.ID()
	dir := path(store, "sessions", bad.String())
	var early map[string]string
	for n := range 6 {
		require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
			e.Header().TurnCount, e.Header().Cwd = n, "sub/folder"
			e.Header().Status = session.StatusPaused
			e.Put(session.Task{ID: "a", Kind: session.KindTask, Name: "Write the form", State: session.TaskPending, Attempts: n})
			e.SetRoots([]string{"a"})
			e.AppendIteration(session.Iteration{Task: "a", Attempt: n + 1, StartedAt: day, OutputTokens: 7, Model: "m1"})
			return nil
		}))
		require.NoError(t, sess.Flush(t.Context()))
		if n == 0 {
			early = tree(t, dir)
		}
	}
	for _, id := range []string{"m1", "m2", "m3"} { // one record each
		says(t, sess, id)
	}
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, sess.Flush(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, store.SetMeta(t.Context(), bad, func(m *lifecycle.Meta) error {
		m.Name, m.Pinned = "the form", true
		return nil
	}))
	require.NoError(t, os.MkdirAll(path(store, "behind"), 0o700))
	for name, data := range early {
		write(t, path(store, "behind", name), data)
	}
	require.NoError(t, store.Close(t.Context()))
	return project, bad, good, []string{"state.json", "metrics.json", "journal-1-1.jsonl", behindJournal, "history/1-6.json.zst", "meta.json", ".lock",
		"../latest", "../../checkpoints/main.jsonl"}
}

// behindJournal is the journal where the readable files are of an early record, so
// that the damaged ones are needed.
const behindJournal = "journal-1-1.jsonl, needed"

// TestDamage puts every kind of damage on every file of a session, one at a time,
// and holds what becomes of it against the promises, and against the recorded table. The
// other session is never affected.
func TestDamage(t *testing.T) {
	t.Parallel()
	project, bad, good, files := damaged(t)
	store, err := lifecycle.Open(project, lifecycle.Options{})
	require.NoError(t, err)
	var was undamaged
	was.state, was.seq, err = store.Read(bad)
	require.NoError(t, err)
	require.NoError(t, store.Close(t.Context()))
	rows := make([]string, len(files)*len(damages))
	var wg sync.WaitGroup
	limit := make(chan struct{}, 4)
	for i, file := range files {
		for j, d := range damages {
			wg.Go(func() {
				limit <- struct{}{}
				defer func() { <-limit }()
				copied := t.TempDir()
				require.NoError(t, os.CopyFS(copied, os.DirFS(project)))
				dir := filepath.Join(copied, ".lopen/sessions", bad.String())
				name := file
				if file == behindJournal {
					name = "journal-1-1.jsonl"
					for _, readable := range []string{"state.json", "metrics.json"} {
						require.NoError(t, os.Rename(filepath.Join(copied, ".lopen/behind", readable), filepath.Join(dir, readable)))
					}
				}
				switch d.name {
				case "removed":
					require.NoError(t, os.Remove(filepath.Join(dir, name)))
				case "older copy":
					older := filepath.Join(copied, ".lopen/behind", name)
					if info, err := os.Stat(older); err != nil || !info.Mode().IsRegular() {
						return
					}
					require.NoError(t, os.Rename(older, filepath.Join(dir, name)))
				default:
					spoil(t, filepath.Join(dir, name), func(data []byte) []byte {
						journal := strings.HasPrefix(name, "journal-")
						if journal { // it is filled ahead
							data = bytes.TrimRight(data, "\x00")
						}
						return d.do(t, data, journal)
					})
				}
				rows[i*len(damages)+j] = fmt.Sprintf("%s\t%s\t%s", file, d.name, outcome(t, copied, bad, good, file == "../latest", was))
			})
		}
	}
	wg.Wait()
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "file\tdamage\tlist\tshow\tverify\trecover\topen\tits folder")
	for _, row := range slices.DeleteFunc(rows, func(row string) bool { return row == "" }) {
		fmt.Fprintln(w, row)
	}
	require.NoError(t, w.Flush())
	if *update {
		require.NoError(t, os.WriteFile(goldenDamage, b.Bytes(), 0o644))
	}
	golden, err := os.ReadFile(goldenDamage)
	require.NoError(t, err)
	require.Equal(t, string(golden), b.String(), "this is what was recorded; where the new outcome is right, record it with -update")
}

func spoil(t *testing.T, name string, fn func([]byte) []byte) {
	info, err := os.Lstat(name)
	require.NoError(t, err)
	if info.Mode()&os.ModeSymlink != 0 { // what stands in it is spoilt, and as a file
		target, err := os.Readlink(name)
		require.NoError(t, err)
		require.NoError(t, os.Remove(name))
		write(t, name, string(fn([]byte(target))))
		return
	}
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	write(t, name, string(fn(data)))
}

// undamaged is the session before it was damaged.
type undamaged struct {
	state *session.State
	seq   uint64
}

// outcome is what becomes of a damaged session, column by column. Whatever that is: what
// is opened or shown as whole is the newest State, what is recovered is not newer and, of
// one damage, at most a record older, and what is not opened stays as it is or is moved
// to quarantine with a reason.
func outcome(t *testing.T, project string, bad, good session.ID, latest bool, was undamaged) string {
	store, err := lifecycle.Open(project, lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	defer store.Close(t.Context())
	well := func() {
		st, _, err := store.Read(good)
		require.NoError(t, err)
		require.Equal(t, good, st.ID())
	}
	well()
	var columns []string
	tell := func(err error) { columns = append(columns, word(err)) }
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, 2)
	for _, info := range infos {
		if info.ID == bad {
			tell(info.Err)
		} else {
			require.NoError(t, info.Err)
		}
	}
	id := bad
	if latest {
		id, err = store.Resolve("latest")
		require.NoError(t, err, "it is a hint")
	}
	st, seq, err := store.Read(id)
	if st != nil {
		columns = append(columns, fmt.Sprintf("%s, record %d", word(err), seq))
		if err == nil {
			require.Equal(t, was.seq, seq)
			require.Equal(t, was.state.Header(), st.Header())
		}
	} else {
		tell(err)
	}
	r, err := store.Verify(bad)
	require.NoError(t, err)
	columns = append(columns, string(r.Condition))
	rec, err := store.Recover(t.Context(), bad.String(), "", true)
	if err == nil {
		columns = append(columns, fmt.Sprintf("record %d, %s", rec.Seq, rec.Strategy))
		require.LessOrEqual(t, rec.Seq, was.seq)
		require.GreaterOrEqual(t, rec.Seq+1, was.seq)
	} else {
		rec, err = store.Recover(t.Context(), bad.String(), repair.Partial, true)
		if tell(err); err == nil {
			columns[len(columns)-1] = fmt.Sprintf("record %d, partial", rec.Seq)
		}
	}
	sess, err := store.Open(bad)
	corrupt := errors.Is(err, lifecycle.ErrCorrupt) && !errors.Is(err, lifecycle.ErrEdited)
	if tell(err); err == nil {
		require.Equal(t, was.state.NumTasks(), sess.State().NumTasks())
		require.Equal(t, was.state.NumIterations(), sess.State().NumIterations())
		require.NoError(t, sess.Close(t.Context()))
	}
	where := "stays"
	if _, err := os.Stat(path(store, "sessions", bad.String())); errors.Is(err, os.ErrNotExist) {
		where = "quarantined"
		quarantined, err := filepath.Glob(path(store, "corrupted", bad.String()+"-*Z"))
		require.NoError(t, err)
		require.Len(t, quarantined, 1)
		reason, err := os.ReadFile(quarantined[0] + ".json")
		require.NoError(t, err)
		require.True(t, json.Valid(reason))
	}
	require.Equal(t, corrupt, where == "quarantined")
	columns = append(columns, where)
	other, err := store.Open(good)
	require.NoError(t, err, "other sessions are not affected")
	require.NoError(t, other.Close(t.Context()))
	well()
	return strings.Join(columns, "\t")
}

func word(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, lifecycle.ErrEdited):
		return "edited"
	case errors.Is(err, lifecycle.ErrCorrupt):
		return "corrupt"
	case errors.Is(err, lifecycle.ErrFutureVersion):
		return "newer"
	}
	return err.Error()
}

// A journal of two holders whose first one's part is gone: the session is whole, its
// past is not, however often somebody resumes it.
func TestBeginOfTheJournalIsGone(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	require.NoError(t, sess.Flush(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	again := func(n int) {
		sess, err := store.Open(sess.ID())
		require.NoError(t, err)
		require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(n)))
		require.NoError(t, sess.Flush(t.Context()))
		require.NoError(t, sess.Close(t.Context()))
	}
	again(2)
	condition := func() repair.Condition {
		r, err := store.Verify(sess.ID())
		require.NoError(t, err)
		return r.Condition
	}
	require.Equal(t, repair.Intact, condition())
	write(t, path(store, "sessions", sess.ID().String(), "journal-1-1.jsonl"), "")
	require.Equal(t, repair.HistoryDamaged, condition())
	again(3)
	require.Equal(t, repair.HistoryDamaged, condition(), "it is not forgotten")
	var whole []record.Record
	require.NoError(t, store.Log(sess.ID(), 0, func(r record.Record) error {
		if r.Snapshot != nil {
			whole = append(whole, r)
		}
		return nil
	}))
	require.Len(t, whole, 1)
	require.Contains(t, whole[0].Snapshot.Counts, record.OpModified, "what it changes of the header is not lost from the log")
}
