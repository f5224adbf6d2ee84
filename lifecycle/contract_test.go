package lifecycle_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// contract is what a Store and a Session promise, a check for each promise.
var contract = map[string]func(*place){
	"save":       checkSave,
	"update":     checkUpdate,
	"burst":      checkBurst,
	"close":      checkClosed,
	"contexts":   checkContexts,
	"ids":        checkIDs,
	"modules":    checkModules,
	"messages":   checkMessages,
	"unknown":    checkUnknown,
	"reopen":     checkReopen,
	"busy":       checkBusy,
	"latest":     checkLatest,
	"list":       checkList,
	"delete":     checkRemove,
	"transcript": checkTranscript,
	"fork":       checkFork,
	"rewind":     checkRewind,
}

func TestContractInFiles(t *testing.T) {
	t.Parallel()
	for name, check := range contract {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			project, err := writer.OpenFS(dir)
			require.NoError(t, err)
			t.Cleanup(func() { _ = project.Close() })
			now := clock()
			check(&place{T: t, project: project, store: func() (*lifecycle.Store, error) {
				store, _, err := lifecycle.Init(dir, lifecycle.Options{Now: now})
				return store, err
			}})
		})
	}
}

func TestContractInMemory(t *testing.T) {
	t.Parallel()
	for name, check := range contract {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := crashfs.New(crashfs.Ext4)
			now := clock()
			check(&place{T: t, project: disk.FS(), store: func() (*lifecycle.Store, error) {
				return lifecycle.InitOn(disk.FS(), lifecycle.Options{Now: now})
			}})
		})
	}
}

// A loop does not know whether its session is saved.
func TestContractOfAnUnsavedSession(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"save", "update", "burst", "close", "contexts", "ids", "modules", "unknown"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, err := lifecycle.OpenUnsaved(t.TempDir(), lifecycle.Options{})
			require.NoError(t, err)
			// A second store would give the same IDs again.
			contract[name](&place{T: t, store: func() (*lifecycle.Store, error) { return one, nil }})
		})
	}
}

// place is where the sessions of a check lie.
type place struct {
	*testing.T
	store   func() (*lifecycle.Store, error) // each one is to the others as another process is
	project writer.FS                        // whose files checkpoints keep
}

func (p *place) open() *lifecycle.Store {
	store, err := p.store()
	require.NoError(p, err)
	p.Cleanup(func() { _ = store.Close(context.Background()) })
	return store
}

func (p *place) create(store *lifecycle.Store, module string) *lifecycle.Session {
	return create(p.T, store, module)
}

// turn saves a State that is the n-th.
func (p *place) turn(sess *lifecycle.Session, n int) {
	require.NoError(p, sess.Update(setTurn(n)))
	require.NoError(p, sess.Save(nil, session.TriggerStepCompleted))
}

func setTurn(n int) func(*session.State) (*session.State, error) {
	return func(st *session.State) (*session.State, error) {
		e := st.Edit()
		e.Header().TurnCount = n
		return e.State()
	}
}

func turnOf(sess *lifecycle.Session) int { return sess.State().Header().TurnCount }

func (p *place) append(sess *lifecycle.Session, ids ...string) {
	for _, id := range ids {
		require.NoError(p, sess.Append(&session.Message{ID: id, Role: session.RoleUser, Content: session.Text("this is " + id)}))
	}
	require.NoError(p, sess.Sync(p.Context()))
}

// read returns the IDs of messages.
func (p *place) read(all iter.Seq2[session.Message, error]) []string {
	var ids []string
	for m, err := range all {
		require.NoError(p, err)
		ids = append(ids, m.ID)
	}
	return ids
}

func (p *place) info(store *lifecycle.Store, id session.ID) lifecycle.Info {
	all, err := store.List()
	require.NoError(p, err)
	i := slices.IndexFunc(all, func(i lifecycle.Info) bool { return i.ID == id })
	require.GreaterOrEqual(p, i, 0, "session %s is not listed", id)
	require.NoError(p, all[i].Err)
	return all[i]
}
