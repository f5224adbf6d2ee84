package decisions_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/decisions"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/envelope"
)

var (
	noon = time.Date(2026, 2, 14, 12, 0, 0, 0, time.UTC)
	me   = writer.Owner{PID: 1, Command: "test"}
)

const list = "- [ ] one\n- [ ] two\n"

// ticking ticks one task.
type ticking string

func (id ticking) Edit(*plan.Plan) (plan.Change, error) {
	return plan.Boxes(map[string]bool{string(id): true}), nil
}

func (id ticking) Decide(_, _ *plan.Plan) map[string]session.TaskState {
	return map[string]session.TaskState{string(id): session.TaskComplete}
}

// said is the newest decision about each task, and which boxes are ticked.
func said(t require.TestingT, dir writer.FS) (decided map[string]session.TaskState, ticked map[string]bool) {
	all, err := decisions.Read(dir)
	require.NoError(t, err)
	decided, ticked = map[string]session.TaskState{}, map[string]bool{}
	for id, d := range tasks.Newest(all) {
		decided[id] = d.State
	}
	p, err := plan.Load(dir, "plan.md", nil)
	require.NoError(t, err)
	for task := range p.All() {
		ticked[task.ID] = task.Checked
	}
	return decided, ticked
}

func newDisk(t *testing.T, mode crashfs.Mode) (*crashfs.Disk, writer.FS) {
	t.Helper()
	disk := crashfs.New(mode)
	require.NoError(t, writer.CreateFile(disk.FS(), "plan.md", []byte(list), 0o600))
	return disk, disk.FS()
}

// The power is cut at every call of a person's command. A box that is ticked is always
// explained by a note, else the run would set it back; what was acknowledged is noted.
func TestPowerCutWhileDeciding(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		disk, dir := newDisk(t, mode)
		_, _, err := decisions.Decide(dir, me, at(noon), ticking("two"))
		require.NoError(t, err)
		points := capture(disk, func() {
			_, _, err := decisions.Decide(dir, me, at(noon), ticking("one"))
			require.NoError(t, err)
		})
		noted := 0
		for i, p := range points {
			for _, v := range p.Variants(nil, 0) {
				dir := p.Crash(v).FS()
				decided, ticked := said(t, dir)
				require.Equal(t, session.TaskComplete, decided["two"], "it was acknowledged before: cut %d, %s", i, v.Name)
				if ticked["one"] || i == len(points)-1 {
					require.Equal(t, session.TaskComplete, decided["one"], "cut %d, %s", i, v.Name)
				}
				if decided["one"] != "" && !ticked["one"] {
					noted++
				}
				_, _, err := decisions.Decide(dir, me, at(noon), ticking("one"))
				require.NoError(t, err, "the next command works")
				entries, err := dir.ReadDir(".")
				require.NoError(t, err)
				for _, e := range entries {
					require.False(t, strings.HasPrefix(e.Name(), ".tmp-"), "what the crash left is cleared: %s", e.Name())
				}
			}
		}
		require.Positive(t, noted, "the note comes first")
	}
}

// capture returns the disk as it is at each call of fn, and after it.
func capture(disk *crashfs.Disk, fn func()) (points []*crashfs.Disk) {
	var mu sync.Mutex
	disk.SetHook(func(crashfs.Op) crashfs.Fault {
		mu.Lock()
		defer mu.Unlock()
		points = append(points, disk.Snapshot())
		return crashfs.Fault{}
	})
	fn()
	disk.SetHook(nil)
	return append(points, disk.Snapshot())
}

// Each call of a person's command fails once. A command that fails has decided nothing.
func TestACommandThatFailsDecidesNothing(t *testing.T) {
	t.Parallel()
	for n, failed := 0, true; failed; n++ {
		disk, dir := newDisk(t, crashfs.Ext4)
		_, _, err := decisions.Decide(dir, me, at(noon), ticking("two"))
		require.NoError(t, err)
		calls := 0
		failed = false
		var op crashfs.Op
		disk.SetHook(func(o crashfs.Op) crashfs.Fault {
			if calls++; calls == n+1 {
				failed, op = true, o
				return crashfs.Fault{Err: syscall.ENOSPC}
			}
			return crashfs.Fault{}
		})
		_, _, err = decisions.Decide(dir, me, at(noon), ticking("one"))
		disk.SetHook(nil)
		decided, ticked := said(t, dir)
		if err != nil {
			require.False(t, ticked["one"] && decided["one"] == "", "%v: a box without a note", op)
			require.True(t, decided["one"] == "" || strings.Contains(err.Error(), "counts"), "%v: %v", op, err)
		} else {
			require.True(t, ticked["one"] && decided["one"] == session.TaskComplete, "%v", op)
		}
		require.Equal(t, session.TaskComplete, decided["two"], "%v", op)
	}
}

// at is a clock that stands.
func at(now time.Time) func() time.Time { return func() time.Time { return now } }

// What a run took is forgotten, and what was noted meanwhile stays.
func TestForget(t *testing.T) {
	t.Parallel()
	_, dir := newDisk(t, crashfs.Ext4)
	require.NoError(t, decisions.Forget(dir, me, nil, nil), "nothing was noted")
	_, _, err := decisions.Decide(dir, me, at(noon), ticking("one"))
	require.NoError(t, err)
	first, err := decisions.Read(dir)
	require.NoError(t, err)
	_, _, err = decisions.Decide(dir, me, at(noon.Add(-time.Hour)), ticking("two"))
	require.NoError(t, err)
	all, err := decisions.Read(dir)
	require.NoError(t, err)
	require.Greater(t, all[1].Seq, first[0].Seq, "also when the clock went back")
	require.NoError(t, decisions.Forget(dir, me, first, nil))
	left, err := decisions.Read(dir)
	require.NoError(t, err)
	require.Equal(t, all[1:], left)
	require.NoError(t, decisions.Forget(dir, me, all, []string{"two"}))
	left, err = decisions.Read(dir)
	require.NoError(t, err)
	require.Equal(t, all[1:], left, "it is kept")
	require.NoError(t, decisions.Forget(dir, me, all, nil))
	left, err = decisions.Read(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = dir.Lstat("decisions.json")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, _, err = decisions.Decide(dir, me, at(noon.Add(-time.Hour)), ticking("one"))
	require.NoError(t, err)
	require.NoError(t, decisions.Forget(dir, me, all, nil), "what was read before")
	left, err = decisions.Read(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing else is forgotten, whatever the clock said")
}

// The time of a decision is that at which nothing else is decided: one that waited for the lock
// is the later one.
func TestTheTimeOfADecision(t *testing.T) {
	t.Parallel()
	_, dir := newDisk(t, crashfs.Ext4)
	_, _, err := decisions.Decide(dir, me, func() time.Time {
		_, err := writer.TryLock(dir, ".plan.lock", me)
		require.ErrorIs(t, err, writer.ErrBusy)
		return noon
	}, ticking("one"))
	require.NoError(t, err)
}

// Two terminals and a run edit one plan at once: no edit is lost.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	const n = 20
	root := t.TempDir()
	var b strings.Builder
	for i := range 3 * n {
		fmt.Fprintf(&b, "- [ ] t%d\n", i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "plan.md"), []byte(b.String()), 0o600))
	var all sync.WaitGroup
	for k := range 3 {
		all.Go(func() {
			dir, err := writer.OpenFS(root)
			if err != nil {
				t.Error(err)
				return
			}
			defer dir.Close()
			for i := range n {
				id := fmt.Sprintf("t%d", 3*i+k)
				if k < 2 {
					_, _, err = decisions.Decide(dir, me, time.Now, ticking(id))
				} else {
					var p *plan.Plan
					if p, err = plan.Load(dir, "plan.md", nil); err == nil {
						_, err = decisions.Edit(dir, me, p, plan.Boxes(map[string]bool{id: true}))
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	dir, err := writer.OpenFS(root)
	require.NoError(t, err)
	defer dir.Close()
	decided, ticked := said(t, dir)
	require.Len(t, decided, 2*n)
	for id, yes := range ticked {
		require.True(t, yes, id)
	}
}

// What is no note of ours is refused, by those who read and by those who would add to it.
func TestForeignNotes(t *testing.T) {
	t.Parallel()
	format := envelope.Format{Key: "schemaVersion", Version: 1, Max: 1 << 20}
	sealed := func(v any) string {
		data, err := format.Encode(v)
		require.NoError(t, err)
		return string(data)
	}
	type all map[string][]tasks.Decision
	ok := tasks.Decision{Seq: 2, At: noon, State: session.TaskComplete, Tasks: []string{"one"}}
	with := func(fn func(*tasks.Decision)) tasks.Decision { d := ok; fn(&d); return d }
	for name, tt := range map[string]struct {
		content string
		want    error
	}{
		"no JSON":        {"nonsense", envelope.ErrCorrupt},
		"no seal":        {`{"schemaVersion":1,"decisions":[]}`, envelope.ErrCorrupt},
		"newer":          {`{"schemaVersion":2,"decisions":[]}`, envelope.ErrFutureVersion},
		"out of order":   {sealed(all{"decisions": {ok, ok}}), envelope.ErrCorrupt},
		"another state":  {sealed(all{"decisions": {with(func(d *tasks.Decision) { d.State = session.TaskInProgress })}}), envelope.ErrCorrupt},
		"about no task":  {sealed(all{"decisions": {with(func(d *tasks.Decision) { d.Tasks = nil })}}), envelope.ErrCorrupt},
		"without number": {sealed(all{"decisions": {with(func(d *tasks.Decision) { d.Seq = 0 })}}), envelope.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, dir := newDisk(t, crashfs.Ext4)
			require.NoError(t, writer.ReplaceFile(dir, "decisions.json", []byte(tt.content), 0o600))
			_, err := decisions.Read(dir)
			require.ErrorIs(t, err, tt.want)
			require.Equal(t, errors.Is(tt.want, envelope.ErrCorrupt), strings.Contains(err.Error(), "move it away"), "%v", err)
			_, _, err = decisions.Decide(dir, me, at(noon), ticking("one"))
			require.ErrorIs(t, err, tt.want)
			require.Error(t, decisions.Forget(dir, me, nil, nil))
			there, err := writer.ReadFile(dir, "decisions.json", 1<<20)
			require.NoError(t, err)
			require.Equal(t, tt.content, string(there), "it is left as it is")
			p, err := plan.Load(dir, "plan.md", nil)
			require.NoError(t, err)
			require.Equal(t, list, string(p.Source()))
		})
	}
}

// A note that is too large to be read is to be moved away.
func TestReadHuge(t *testing.T) {
	t.Parallel()
	_, dir := newDisk(t, crashfs.Ext4)
	require.NoError(t, writer.ReplaceFile(dir, "decisions.json", make([]byte, 16<<20+1), 0o600))
	_, err := decisions.Read(dir)
	require.ErrorContains(t, err, "more than the 16777216 that are read; move it away, and decide again")
}

// A command about more tasks than the note can name is refused, and changes nothing.
func TestTooManyDecisions(t *testing.T) {
	t.Parallel()
	_, dir := newDisk(t, crashfs.Ext4)
	_, _, err := decisions.Decide(dir, me, at(noon), huge{})
	require.ErrorIs(t, err, decisions.ErrTooMany)
	decided, ticked := said(t, dir)
	require.Empty(t, decided)
	require.False(t, ticked["one"])
}

type huge struct{}

func (huge) Edit(p *plan.Plan) (plan.Change, error) { return ticking("one").Edit(p) }

func (huge) Decide(_, _ *plan.Plan) map[string]session.TaskState {
	want := map[string]session.TaskState{}
	for i := range 20 << 10 {
		want[fmt.Sprint(i, strings.Repeat("x", 1000))] = session.TaskComplete
	}
	return want
}
