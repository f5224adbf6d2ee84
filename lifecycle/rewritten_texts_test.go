package lifecycle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A planter puts a credential into each text that it is shown, each time another one.
type planter struct{ n int }

var planted = regexp.MustCompile(`ghp_0123456789abcdefghijABCDEFGHIJ[0-9]{6}`)

func (p *planter) secret() string {
	p.n++
	return fmt.Sprintf("ghp_0123456789abcdefghijABCDEFGHIJ%06d", p.n)
}

func (p *planter) object() strictjson.Value {
	return fmt.Appendf(nil, `{"note":"a %s","%s":["%s"]}`, p.secret(), p.secret(), p.secret())
}

// fill plants a credential in each text of the struct that v points to.
func (p *planter) fill(v any) { p.value(reflect.ValueOf(v).Elem()) }

func (p *planter) value(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[session.ID]():
	case v.Type() == reflect.TypeFor[strictjson.Value]():
		v.SetBytes(p.object())
	case v.Type() == reflect.TypeFor[[]session.Field]():
		v.Set(reflect.ValueOf([]session.Field{{Key: "later" + p.secret(), Value: p.object()}, {Key: "newer", Value: p.object()}}))
	case v.Type() == reflect.TypeFor[string]():
		v.SetString("x " + p.secret())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			p.value(v.Index(i))
		}
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		v.Set(reflect.New(v.Type().Elem()))
		p.value(v.Elem())
	case v.Kind() == reflect.Struct && v.Type().String() != "time.Time":
		for i := range v.NumField() {
			p.value(v.Field(i))
		}
	}
}

// task returns a task with a credential in each text.
func (p *planter) task(id, parent string, children ...string) session.Task {
	t := session.Task{}
	p.fill(&t)
	t.ID, t.Parent, t.Children, t.Kind, t.State = id, parent, children, session.KindTask, session.TaskPending
	return t
}

// work gives a session a credential in each place that has texts.
func (p *planter) work(t *testing.T, store *lifecycle.Store, sess *lifecycle.Session) {
	ctx := context.Background()
	parent := "part-" + p.secret()
	child := parent + "/task-" + p.secret()
	change := func(fn func(e *session.Edit)) {
		require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
			fn(e)
			return nil
		}))
		require.NoError(t, sess.Flush(ctx))
	}
	header := func(e *session.Edit) {
		h, was := e.Header(), *e.Header()
		p.fill(h)
		h.Status, h.Phase, h.Step, h.ExitReason, h.CreatedAt, h.UpdatedAt = was.Status, was.Phase, was.Step, was.ExitReason, was.CreatedAt, was.UpdatedAt
		h.Lineage, h.Component, h.ActiveTask = was.Lineage, parent, child
		h.Origin, h.Holder.PID = was.Origin, 1
		h.Settings.Command = []string{"agent", "--password", "s3cr:et_" + p.secret(), "https://me:hunter2secret@example.com"}
	}
	change(func(e *session.Edit) {
		header(e)
		e.Put(p.task(child, parent))
		e.Put(p.task(parent, "", child))
		e.SetRoots(append(sess.State().Roots(), parent))
		e.AppendIteration(session.Iteration{Task: child, Model: p.secret(), StartedAt: day})
	})
	change(header)
	change(func(e *session.Edit) { e.Header().Extra, e.Header().Worktree = nil, nil }) // checkpoints are of the project
	var a record.Attempt
	p.fill(&a)
	a.Task, a.Leaves, a.StartedAt, a.EndedAt = child, []string{child}, day, day
	require.NoError(t, sess.Record(a))
	require.NoError(t, sess.NotSetBack(child, "not "+p.secret()))
	for _, id := range []string{"m1", "m2"} {
		m := session.Message{ID: id, Time: day, Role: session.RoleAssistant, Content: p.object(), ToolCalls: []session.ToolCall{{ID: "call-" + id, Name: p.secret(), Arguments: p.object()}}}
		require.NoError(t, sess.Append(&m))
	}
	require.NoError(t, sess.Append(&session.Message{ID: "m3", Time: day, Role: session.RoleTool, ToolCallID: "call-m1", Content: session.Text(p.secret())}))
	require.NoError(t, sess.AppendEvent(fmt.Appendf(nil, `{"uuid":"e1","type":"tool","private":%s}`, p.object())))
	file := p.secret()
	put(t, store.Project(), file, "content")
	cp, _, err := sess.Checkpoint(ctx, checkpoint.Manual, child)
	require.NoError(t, err)
	put(t, store.Project(), file, "other")
	_, err = sess.Rewind(ctx, cp.ID, rewind.Options{Files: true, Paths: []string{file}, Force: true})
	require.NoError(t, err)
	change(func(e *session.Edit) { // too large for a record
		for i := range 100 {
			e.Put(p.task(fmt.Sprintf("%s/%d", parent, i), parent))
		}
		top := p.task(parent, "", child)
		for i := range 100 {
			top.Children = append(top.Children, fmt.Sprintf("%s/%d", parent, i))
		}
		e.Put(top)
	})
	out, err := sess.Output(1, output.Attempt{Task: child, Attempt: 1, Begun: day})
	require.NoError(t, err)
	out.Prompt([]byte(p.secret()))
	_, _ = io.WriteString(out.Stream(output.Log, ""), p.secret()+"\n")
	_, _ = io.WriteString(out.Stream(output.Raw, ""), string(p.object())+"\n")
	require.NoError(t, out.Close("failed", p.secret(), true))
	require.NoError(t, store.SetMeta(ctx, sess.ID(), func(m *lifecycle.Meta) error {
		m.Name = "name " + p.secret()
		return nil
	}))
	var note repair.Note
	p.fill(&note)
	note.Session = sess.ID().String()
	dir, err := store.Project().Sub(".lopen/sessions/" + sess.ID().String())
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, folder.WriteSmall(dir, "recovery.json", note))
}

// bytesOf returns all bytes of the files below a folder, decompressed, by path.
func bytesOf(t *testing.T, dir writer.FS, below string) map[string]string {
	all := map[string]string{}
	entries, err := dir.ReadDir(below)
	require.NoError(t, err)
	for _, e := range entries {
		name := strings.TrimPrefix(below+"/"+e.Name(), "./")
		if e.IsDir() {
			for name, data := range bytesOf(t, dir, name) {
				all[name] = data
			}
			continue
		}
		data, err := writer.ReadFile(dir, name, 1<<30)
		require.NoError(t, err)
		if strings.HasSuffix(name, ".zst") {
			z, err := zstd.NewReader(bytes.NewReader(data))
			require.NoError(t, err)
			data, err = io.ReadAll(z)
			require.NoError(t, err)
			z.Close()
		}
		all[name] = string(data)
	}
	return all
}

// plantedSession returns a store with a session, and a fork of it, that have a credential in
// each place that has texts.
func plantedSession(t *testing.T) (*crashfs.Disk, session.ID) {
	ctx := context.Background()
	disk := crashfs.New(crashfs.Ext4)
	opts := simOptions
	opts.Policy = lifecycle.Policy{Unredacted: true, Interval: 2}
	store, err := lifecycle.InitOn(disk.FS(), opts)
	require.NoError(t, err)
	store.Shrink(64<<10, 16<<10)
	sess, err := store.Create(ctx, "sim")
	require.NoError(t, err)
	p := &planter{}
	require.NoError(t, store.CreatePlan("sim", []byte("- [ ] the plan has "+p.secret()+"\n")))
	p.work(t, store, sess)
	require.NoError(t, sess.Close(ctx))
	fork, err := store.Fork(ctx, sess.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	p.work(t, store, fork)
	require.NoError(t, fork.Close(ctx))
	require.NoError(t, store.Close(ctx))
	return disk, fork.ID()
}

func TestNoCredentialIsLeft(t *testing.T) {
	t.Parallel()
	disk, id := plantedSession(t)
	to := id
	to.Counter = 99
	rewritten(t, disk.FS(), id, to, carry.Rewriting{Redact: &redact.Redactor{}})
	was, now := folderOf(t, disk.FS(), id), folderOf(t, disk.FS(), to)
	defer was.Close()
	defer now.Close()

	had := map[string]int{}
	for name, data := range bytesOf(t, was, ".") {
		kind, _, _ := strings.Cut(name, "/")
		if strings.HasPrefix(kind, "journal-") {
			kind = "journal"
		}
		had[kind] += len(planted.FindAllString(data, -1))
	}
	for _, kind := range []string{"journal", "inherited", "history", "output", "meta.json", "recovery.json"} {
		require.NotZero(t, had[kind], "no credential was planted in %s", kind)
	}
	for name, data := range bytesOf(t, now, ".") {
		for _, at := range planted.FindAllStringIndex(data, -1) {
			t.Errorf("%s has %s", name, data[max(at[0]-200, 0):min(at[1]+50, len(data))])
		}
		require.NotContains(t, data, "hunter2secret", name)
		require.NotContains(t, data, "s3cr:et", name)
	}

	rewinds, a, b := 0, instants(t, was, id, to), instants(t, now, to, to)
	require.Len(t, b, len(a))
	for seq := range a {
		x, y := a[seq].at, b[seq].at
		if r := y.Rewinding; r != nil {
			rewinds++
			require.Len(t, r.Paths, 1)
			require.Equal(t, "[redacted:github-token]", string(r.Paths[0]))
			changed := *x.Rewinding
			changed.Paths = r.Paths
			x.Rewinding = &changed
		}
		require.Equal(t, x, y, "record %d", seq)
	}
	require.NotZero(t, rewinds)
	first, second := appendedIn(t, was, id, false), appendedIn(t, now, to, false)
	require.Len(t, second, 6)
	for i := range first {
		require.Equal(t, first[i].Message.ID, second[i].Message.ID)
		require.Equal(t, first[i].Message.Role, second[i].Message.Role)
		require.Equal(t, first[i].At.Seq, second[i].At.Seq)
	}
	st, _, err := folder.StateAt(now, to, uint64(len(b)))
	require.NoError(t, err)
	require.Equal(t, 204, st.NumTasks())
	_, ok := st.Task(st.Header().ActiveTask)
	require.True(t, ok, "an ID with a credential is the same at each place")
	resumeRewritten(t, disk.FS(), to)
}

func TestWithoutMessages(t *testing.T) {
	t.Parallel()
	disk, id := plantedSession(t)
	to := id
	to.Counter = 99
	rewritten(t, disk.FS(), id, to, carry.Rewriting{NoMessages: true})
	was, now := folderOf(t, disk.FS(), id), folderOf(t, disk.FS(), to)
	defer was.Close()
	defer now.Close()
	require.Equal(t, instants(t, was, id, to), instants(t, now, to, to), "open calls included")
	messages, events := appendedIn(t, now, to, false), appendedIn(t, now, to, true)
	require.Len(t, messages, 6)
	require.Len(t, events, 2)
	for i, a := range appendedIn(t, was, id, false) {
		m := a.Message
		m.Content = session.Text("left out of what was carried")
		for i := range m.ToolCalls {
			m.ToolCalls[i].Arguments = nil
		}
		require.Equal(t, m, messages[i].Message)
		require.Equal(t, a.At, messages[i].At)
	}
	require.JSONEq(t, `{"uuid":"e1","type":"tool","content":"left out of what was carried"}`, string(events[1].Object))
	for name, data := range bytesOf(t, now, ".") {
		require.NotContains(t, name, "output")
		require.NotContains(t, data, `"private"`, name)
	}
	resumeRewritten(t, disk.FS(), to)
}

// What is exported has neither credentials nor messages, if that is asked for, and can be
// resumed where it is put in place.
func TestExportOfPlantedSessions(t *testing.T) {
	t.Parallel()
	disk, id := plantedSession(t)
	store, err := lifecycle.OpenOn(disk.FS(), simOptions)
	require.NoError(t, err)
	u, _, out := export(t, store, carry.ExportOptions{All: true, Redact: &redact.Redactor{}, NoMessages: true})
	require.True(t, u.header.Redacted && u.header.NoMessages)
	require.Len(t, u.header.Sessions, 2)
	require.Contains(t, strings.Join(out.Warnings, "\n"), "checkpoints are left out")
	require.Zero(t, out.Checkpoints+out.Objects)
	header, err := json.Marshal(u.header)
	require.NoError(t, err)
	require.Empty(t, planted.FindAllString(string(header), -1))
	dir, err := writer.OpenFS(u.project)
	require.NoError(t, err)
	defer dir.Close()
	documents := 0
	for name, data := range bytesOf(t, dir, ".lopen") {
		if strings.HasPrefix(name, ".lopen/documents/") {
			documents++
		}
		if name != ".lopen/project.jsonl" { // the paths of files
			require.Empty(t, planted.FindAllString(data, -1), name)
		}
		require.NotContains(t, name, "/output/")
		require.NotContains(t, name, "messages.jsonl")
	}
	require.NotZero(t, documents)
	sameAsIn := folderOf(t, dir, id)
	defer sameAsIn.Close()
	require.Len(t, appendedIn(t, sameAsIn, id, false), 6)
	resumeRewritten(t, dir, id)

	require.NoError(t, store.Close(t.Context()))
}

// A session that cannot be written anew is skipped, or refused alone, and leaves nothing behind.
func TestExportOfWhatCannotBeRedacted(t *testing.T) {
	disk, id := plantedSession(t)
	t.Setenv("TMPDIR", t.TempDir())
	store, err := lifecycle.OpenOn(disk.FS(), simOptions)
	require.NoError(t, err)
	r, err := redact.New([]string{"uuid|[a-z]"})
	require.NoError(t, err)
	u := unpack(t)
	_, err = store.Export(t.Context(), carry.ExportOptions{Sessions: []session.ID{id}, Redact: r}, u.open)
	require.ErrorContains(t, err, id.String())
	require.False(t, u.done)
	require.Empty(t, u.names)
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, store.Close(t.Context()))
}

// IDs are made of names, so they are made again of the redacted ones, as the redacted plan has
// them: what is done there stays done.
func TestIDsOfNamesWithCredentials(t *testing.T) {
	t.Parallel()
	p := &planter{}
	store := initStore(t)
	text := ""
	for _, name := range []string{"first %s", "second", "use %s", "use %s"} {
		if strings.Contains(name, "%") {
			name = fmt.Sprintf(name, p.secret())
		}
		text += "- [ ] " + name + "\n  - [ ] below it\n"
	}
	require.NoError(t, store.CreatePlan("auth", []byte(text)))
	sess := create(t, store, "auth")
	was, err := store.Plan("auth")
	require.NoError(t, err)
	done := was.Tasks()[1].ID
	require.True(t, strings.HasSuffix(done, "/below-it"), done)
	require.NoError(t, sess.Update(func(st *session.State) (*session.State, error) {
		r, err := tasks.Reconcile(st, was, tasks.Between)
		return r.State, err
	}))
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		task, ok := e.Task(done)
		require.True(t, ok)
		task.State, task.Box, task.Attempts = session.TaskComplete, session.BoxTicked, 1
		e.Put(task)
		e.Header().ActiveTask = task.ID
		return nil
	}))
	_, err = store.EditPlan("auth", was, plan.Boxes(map[string]bool{done: true}))
	require.NoError(t, err)
	require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text("Do " + done + ", see #" + was.Tasks()[0].ID)}))
	require.NoError(t, sess.Close(t.Context()))

	u, _, _ := export(t, store, carry.ExportOptions{Sessions: []session.ID{sess.ID()}, Redact: &redact.Redactor{}})
	dir, err := writer.OpenFS(u.project)
	require.NoError(t, err)
	defer dir.Close()
	var hidden string
	for name, data := range bytesOf(t, dir, ".lopen") {
		require.NotContains(t, strings.ToLower(data), "0123456789abcdefghij", name)
		if strings.HasPrefix(name, ".lopen/documents/") {
			hidden = data
		}
	}
	now := plan.Parse([]byte(hidden))
	sub := folderOf(t, dir, sess.ID())
	defer sub.Close()
	ld, err := folder.Load(sub, sess.ID())
	require.NoError(t, err)
	require.Equal(t, len(now.Tasks()), ld.State.NumTasks())
	r, err := tasks.Reconcile(ld.State, now, tasks.Between)
	require.NoError(t, err)
	require.Empty(t, r.Notes, "the State has the tasks of the redacted plan")
	require.Equal(t, 1, r.State.Progress().Done)
	require.Equal(t, "first-redacted-github-token/below-it", ld.State.Header().ActiveTask)
}
