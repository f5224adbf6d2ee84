package lifecycle_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An unpacked takes what is exported and puts it in place in another project.
type unpacked struct {
	t       *testing.T
	header  bundle.Header
	project string
	hold    *blob.Hold
	batch   *blob.Batch
	names   []string
	bytes   int64
	done    bool
}

func unpack(t *testing.T) *unpacked {
	u := &unpacked{t: t, project: t.TempDir()}
	store := storeIn(t, u.project)
	dir := path(store, "blobs")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.MkdirAll(path(store, "checkpoints"), 0o700))
	blobs, err := writer.OpenFS(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = blobs.Close() })
	u.hold, err = blob.New(blobs).Hold(t.Context())
	require.NoError(t, err)
	u.batch = u.hold.Batch()
	return u
}

func (u *unpacked) open(h bundle.Header) (carry.Sink, error) {
	u.header = h
	return u, nil
}

func (u *unpacked) Add(name string, size int64, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	require.Len(u.t, data, int(size), name)
	u.names, u.bytes = append(u.names, name), u.bytes+size
	file := filepath.Join(u.project, ".lopen", filepath.FromSlash(name))
	require.NoError(u.t, os.MkdirAll(filepath.Dir(file), 0o700))
	return os.WriteFile(file, data, 0o600)
}

func (u *unpacked) Object(h blob.Hash, size int64, open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	sum, n, err := u.batch.Put(r, blob.Hash{})
	if err != nil {
		return err
	}
	require.Equal(u.t, h, sum)
	require.Equal(u.t, size, n)
	u.bytes += n
	return nil
}

func (u *unpacked) Close() error {
	u.done = true
	return errors.Join(u.batch.Commit(), u.hold.Release())
}

// export exports to another project and returns its store.
func export(t *testing.T, store *lifecycle.Store, o carry.ExportOptions) (*unpacked, *lifecycle.Store, *carry.Exported) {
	t.Helper()
	u := unpack(t)
	out, err := store.Export(t.Context(), o, u.open)
	require.NoError(t, err)
	require.True(t, u.done)
	require.Equal(t, u.bytes, out.Bytes)
	require.LessOrEqual(t, out.Bytes, u.header.Bytes)
	return u, storeIn(t, u.project), out
}

// requireSame fails unless a session is the same in two stores, up to a record.
func requireSame(t *testing.T, a, b *lifecycle.Store, id session.ID, seq uint64) {
	t.Helper()
	report, err := b.Verify(id)
	require.NoError(t, err)
	require.Contains(t, []repair.Condition{repair.Intact, repair.Torn}, report.Condition, "%v %v", report.Err, report.Faults)
	require.NoError(t, report.Err)
	require.Equal(t, seq, report.Seq)
	was, err := a.ReadAt(id, seq)
	require.NoError(t, err)
	now, at, err := b.Read(id)
	require.NoError(t, err)
	require.Equal(t, seq, at)
	require.Equal(t, string(wire.EncodeState(was, session.Mark{})), string(wire.EncodeState(now, session.Mark{})))
	require.Equal(t, string(wire.EncodeMetrics(was, session.Mark{})), string(wire.EncodeMetrics(now, session.Mark{})))
}

func messagesOf(t *testing.T, store *lifecycle.Store, id session.ID) (all []string) {
	t.Helper()
	for m, err := range store.Messages(id) {
		require.NoError(t, err)
		all = append(all, m.ID)
	}
	return all
}

func TestExport(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, cps := agentWorked(t, store, "auth")
	for _, text := range []string{"one", "two"} {
		require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(text)}))
	}
	large := strings.Repeat("0123456789abcdef", 8<<10)
	put(t, store.Project(), "large", large)
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, sess.Sync(t.Context()))
	require.NoError(t, store.SetMeta(t.Context(), sess.ID(), func(m *lifecycle.Meta) error { m.Name = "a name"; return nil }))

	u, other, out := export(t, store, carry.ExportOptions{Sessions: []session.ID{sess.ID()}, Lopen: "test"})
	require.Equal(t, "a name", out.Header.Sessions[0].Name)
	require.Equal(t, 2, out.Header.Sessions[0].Done)
	require.Equal(t, len(cps)+1, out.Checkpoints)
	require.Empty(t, out.Warnings)
	requireSame(t, store, other, sess.ID(), out.Header.Sessions[0].Seq)
	require.Len(t, messagesOf(t, other, sess.ID()), 2)
	require.Equal(t, messagesOf(t, store, sess.ID()), messagesOf(t, other, sess.ID()))
	require.Equal(t, ".lopen/modules/auth/plan.md", u.header.Documents[0].Path)
	lines, err := os.ReadFile(filepath.Join(u.project, ".lopen", "project.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(lines), `{"path":"large","size":131072,"mode":420,"sha256":"`)

	there, err := other.Checkpoints(nil)
	require.NoError(t, err)
	defer there.Close()
	all, faults, err := there.List()
	require.NoError(t, err)
	require.Empty(t, faults)
	require.Len(t, all, len(cps)+1)
	for i, id := range cps {
		require.Equal(t, id, all[i].ID)
		require.False(t, all[i].Cut)
	}
	f, known, err := there.Tree(all[len(cps)].Root).Find("large")
	require.NoError(t, err)
	require.True(t, known)
	content, err := there.Content(f)
	require.NoError(t, err)
	got, err := io.ReadAll(content)
	require.NoError(t, err)
	require.Equal(t, large, string(got))

	// It is resumed, and goes back, as where it comes from.
	again, err := other.Open(sess.ID())
	require.NoError(t, err)
	require.NoError(t, again.Change(session.TriggerTaskCompleted, turns(7)))
	require.NoError(t, again.Close(t.Context()))
}

// TestExportOfEachCondition exports sessions that went through something.
func TestExportOfEachCondition(t *testing.T) {
	t.Parallel()
	say := func(t *testing.T, sess *lifecycle.Session, text string) {
		require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(text)}))
		require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(len(text))))
		require.NoError(t, sess.Sync(t.Context()))
	}
	for name, build := range map[string]func(*testing.T, *lifecycle.Store) session.ID{
		"new":    func(t *testing.T, store *lifecycle.Store) session.ID { return made(t, store, "auth") },
		"killed": func(t *testing.T, store *lifecycle.Store) session.ID { return interrupted(t, store, "auth") },
		"torn": func(t *testing.T, store *lifecycle.Store) session.ID {
			sess := create(t, store, "auth")
			say(t, sess, "one")
			require.NoError(t, sess.Close(t.Context()))
			f, err := os.OpenFile(path(store, "sessions", sess.ID().String(), "journal-1-1.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteString(`{"seq":9,"epoch":1,`)
			require.NoError(t, errors.Join(err, f.Close()))
			return sess.ID()
		},
		"forked": func(t *testing.T, store *lifecycle.Store) session.ID {
			sess := create(t, store, "auth")
			say(t, sess, "one")
			for _, text := range []string{"second", "and a third"} {
				fork, err := store.Fork(t.Context(), sess.ID(), lifecycle.ForkOptions{})
				require.NoError(t, err)
				say(t, fork, text)
				sess = fork
			}
			return sess.ID()
		},
		"recovered": func(t *testing.T, store *lifecycle.Store) session.ID {
			sess := create(t, store, "auth")
			say(t, sess, "one")
			require.NoError(t, sess.Close(t.Context()))
			ruin(t, path(store, "sessions", sess.ID().String()))
			r, err := store.Recover(t.Context(), sess.ID().String(), "", false)
			require.NoError(t, err)
			return r.ID
		},
		"rewound": func(t *testing.T, store *lifecycle.Store) session.ID {
			sess, cps := agentWorked(t, store, "auth")
			_, err := sess.Rewind(t.Context(), cps[1], both)
			require.NoError(t, err)
			return sess.ID()
		},
		"closed twice": func(t *testing.T, store *lifecycle.Store) session.ID {
			sess := create(t, store, "auth")
			for _, text := range []string{"one", "second", "and a third"} {
				say(t, sess, text)
				require.NoError(t, sess.Close(t.Context()))
				var err error
				sess, err = store.Open(sess.ID())
				require.NoError(t, err)
			}
			return sess.ID()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			id := build(t, store)
			_, other, out := export(t, store, carry.ExportOptions{Sessions: []session.ID{id}})
			requireSame(t, store, other, id, out.Header.Sessions[0].Seq)
			if name == "torn" {
				report, err := other.Verify(id)
				require.NoError(t, err)
				require.Equal(t, repair.Intact, report.Condition, "what was never acknowledged is not carried")
			}
			require.Equal(t, messagesOf(t, store, id), messagesOf(t, other, id))
			was, err := store.Checkpoints(nil)
			if err != nil {
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
			} else {
				defer was.Close()
				now, err := other.Checkpoints(nil)
				require.NoError(t, err)
				defer now.Close()
				line, err := store.CheckpointLine(was, id)
				require.NoError(t, err)
				there, err := other.CheckpointLine(now, id)
				require.NoError(t, err)
				require.Equal(t, line, there)
			}
			sess, err := other.Open(id)
			require.NoError(t, err)
			say(t, sess, "it goes on there")
			require.NoError(t, sess.Close(t.Context()))
			report, err := other.Verify(id)
			require.NoError(t, err)
			require.Equal(t, repair.Intact, report.Condition, "%v %v", report.Err, report.Faults)
		})
	}
}

// TestExportOfALogWithAHole: state.json makes up for it here, and an import does not believe that
// file. So nothing is exported that would be refused there.
func TestExportOfALogWithAHole(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	for i := range 3 {
		require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(i+1)))
		require.NoError(t, sess.Sync(t.Context()))
	}
	require.NoError(t, sess.Close(t.Context()))
	log := path(store, "sessions", sess.ID().String(), "journal-1-1.jsonl")
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	at := strings.Index(string(text), `{"seq":2,`)
	require.Positive(t, at)
	text[at+2] ^= 1
	require.NoError(t, os.WriteFile(log, text, 0o600))
	report, err := store.Verify(sess.ID())
	require.NoError(t, err)
	require.Equal(t, repair.HistoryDamaged, report.Condition)

	none := func(bundle.Header) (carry.Sink, error) { return nil, errors.New("it is exported") }
	_, err = store.Export(t.Context(), carry.ExportOptions{Sessions: []session.ID{sess.ID()}}, none)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	require.ErrorAs(t, err, new(*lifecycle.DamagedError))
	_, _, out := export(t, store, carry.ExportOptions{All: true})
	require.Len(t, out.Skipped, 1)
}

// TestADamagedContentCostsItsCheckpoints exports a chain of which one content is damaged: the
// export begins again without the checkpoints that need it.
func TestADamagedContentCostsItsCheckpoints(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	noise := make([]byte, 128<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // it cannot be compressed
	large := string(noise)
	var all []*checkpoint.Entry
	require.NoError(t, store.Project().Mkdir("sub", 0o700))
	for i, content := range []string{"first", large, "third", large} {
		put(t, store.Project(), "n", fmt.Sprint(i))
		put(t, store.Project(), "sub/file", content)
		e, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err)
		all = append(all, e)
	}
	require.NoError(t, sess.Close(t.Context()))
	sum := sha256.Sum256([]byte(large))
	name := path(store, "blobs", hex.EncodeToString(sum[:1]), hex.EncodeToString(sum[1:]))
	require.NoError(t, os.Chmod(name, 0o600))
	write(t, name, strings.Replace(large, "a", "b", 1))

	u := unpack(t)
	begun := 0
	out, err := store.Export(t.Context(), carry.ExportOptions{Sessions: []session.ID{sess.ID()}}, func(h bundle.Header) (carry.Sink, error) {
		begun++
		return u.open(h)
	})
	require.NoError(t, err)
	require.Equal(t, 2, begun)
	require.Equal(t, 2, out.Checkpoints)
	require.Len(t, out.Warnings, 2)
	for i, n := range []int{2, 4} {
		require.Contains(t, out.Warnings[i], fmt.Sprintf("the files of checkpoint %d are left out: ", n))
		require.Contains(t, out.Warnings[i], hex.EncodeToString(sum[:]))
	}
	cps, err := storeIn(t, u.project).Checkpoints(nil)
	require.NoError(t, err)
	defer cps.Close()
	there, faults, err := cps.List()
	require.NoError(t, err)
	require.Empty(t, faults)
	for i, e := range there {
		require.Equal(t, all[i].ID, e.ID)
		require.False(t, e.Cut, "who was at work is known")
		require.Equal(t, i%2 == 1, e.Removed != "")
	}

	// Where it cannot begin again, it says why.
	_, err = store.Export(t.Context(), carry.ExportOptions{Sessions: []session.ID{sess.ID()}}, func(bundle.Header) (carry.Sink, error) {
		if begun++; begun > 3 {
			return nil, errors.New("not again")
		}
		return unpack(t), nil
	})
	require.ErrorContains(t, err, "not again")
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
}

// TestExportWithLess exports what may be shown to others.
func TestExportWithLess(t *testing.T) {
	t.Parallel()
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	store := storeWith(t, t.TempDir(), lifecycle.Policy{Unredacted: true})
	sess, _ := agentWorked(t, store, "auth")
	for _, text := range []string{"one", "the token is " + secret} {
		require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text(text)}))
	}
	put(t, store.Project(), "SPEC.md", "# Token\n\n"+secret+"\n")
	require.NoError(t, sess.Flush(t.Context()))
	require.NoError(t, store.SetMeta(t.Context(), sess.ID(), func(m *lifecycle.Meta) error { m.Name = "of " + secret; return nil }))
	ids := messagesOf(t, store, sess.ID())
	for name, c := range map[string]struct {
		o           carry.ExportOptions
		checkpoints bool
		said        string // by the second message
	}{
		"redacted":    {carry.ExportOptions{Redact: &redact.Redactor{}}, false, "the token is [redacted:"},
		"no messages": {carry.ExportOptions{NoMessages: true}, true, ""},
		"both":        {carry.ExportOptions{NoMessages: true, Redact: &redact.Redactor{}}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := c.o
			o.Sessions = []session.ID{sess.ID()}
			o.Specification = func(string) string { return "SPEC.md" }
			u, other, out := export(t, store, o)
			require.Equal(t, o.NoMessages, u.header.NoMessages)
			require.Equal(t, o.Redact != nil, u.header.Redacted)
			require.Equal(t, ids, messagesOf(t, other, sess.ID()))
			n := 0
			for m, err := range other.Messages(sess.ID()) {
				require.NoError(t, err)
				text, err := strictjson.Marshal(m.Content)
				require.NoError(t, err)
				require.NotContains(t, string(text), secret)
				if n++; n == 2 {
					require.Contains(t, string(text), c.said)
				}
			}
			require.Equal(t, c.checkpoints, out.Checkpoints > 0)
			for _, name := range u.names {
				require.NotContains(t, name, "messages.jsonl")
				require.True(t, c.checkpoints || !strings.HasPrefix(name, "checkpoints/"), name)
				if o.Redact != nil {
					data, err := os.ReadFile(filepath.Join(u.project, ".lopen", name))
					require.NoError(t, err)
					require.NotContains(t, string(data), secret, name)
				}
			}
			if o.Redact != nil {
				require.NotContains(t, fmt.Sprint(u.header), secret)
			}
			again, err := other.Open(sess.ID())
			require.NoError(t, err)
			require.NoError(t, again.Close(t.Context()))
			report, err := other.Verify(sess.ID())
			require.NoError(t, err)
			require.Equal(t, repair.Intact, report.Condition, "%v %v", report.Err, report.Faults)
		})
	}
}
