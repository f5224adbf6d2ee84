package lifecycle_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// moved damages a session at the end of its state.json, or with head at its beginning,
// and opens it, which moves it to corrupted/.
func moved(t *testing.T, store *lifecycle.Store, id session.ID, head bool) {
	t.Helper()
	dir := path(store, "sessions", id.String())
	if head { // then nothing but the next holder's segment tells of the record that is missing
		again, err := store.Open(id)
		require.NoError(t, err)
		require.NoError(t, again.Close(t.Context()))
		require.NoError(t, os.Truncate(filepath.Join(dir, "state.json"), 100))
	}
	ruin(t, dir)
	_, err := store.Open(id)
	var damaged *lifecycle.DamagedError
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, id, damaged.ID)
	require.True(t, damaged.Moved())
}

// If the session that a run would resume is damaged, the run resumes no other session until
// somebody has decided.
func TestUnfinishedThatIsDamaged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, store *lifecycle.Store, unfinished func() (session.ID, error)){
		"the only one": func(t *testing.T, store *lifecycle.Store, unfinished func() (session.ID, error)) {
			only := made(t, store, "auth")
			moved(t, store, only, true)
			made(t, store, "pay")
			id, err := unfinished()
			require.ErrorIs(t, err, lifecycle.ErrCorrupt)
			require.Equal(t, only, id)
			_, err = store.Recover(t.Context(), only.String(), "", false)
			require.NoError(t, err)
			id, err = unfinished()
			require.NoError(t, err)
			require.Equal(t, "auth-20260214-2", id.String())
			quarantined, err := store.Quarantined()
			require.NoError(t, err)
			require.Empty(t, quarantined)
		},
		"the newest by its ID": func(t *testing.T, store *lifecycle.Store, unfinished func() (session.ID, error)) {
			made(t, store, "auth")
			second := made(t, store, "auth")
			moved(t, store, second, true)
			id, err := unfinished()
			require.ErrorIs(t, err, lifecycle.ErrCorrupt)
			require.Equal(t, second, id)
		},
		"the one that was updated last": func(t *testing.T, store *lifecycle.Store, unfinished func() (session.ID, error)) {
			first := create(t, store, "auth")
			completed(t, store, "auth")
			made(t, store, "auth")
			require.NoError(t, first.Change(session.TriggerStepCompleted, turns(1)))
			require.NoError(t, first.Close(t.Context()))
			moved(t, store, first.ID(), false)
			id, err := unfinished()
			require.ErrorIs(t, err, lifecycle.ErrCorrupt)
			require.Equal(t, first.ID(), id)
			fresh := made(t, store, "auth")
			id, err = unfinished()
			require.NoError(t, err)
			require.Equal(t, fresh, id)
		},
		"an older one": func(t *testing.T, store *lifecycle.Store, unfinished func() (session.ID, error)) {
			first, second := made(t, store, "auth"), made(t, store, "auth")
			for _, head := range []bool{true, false} {
				if !head {
					first, second = second, made(t, store, "auth")
				}
				moved(t, store, first, head)
				id, err := unfinished()
				require.NoError(t, err)
				require.Equal(t, second, id)
			}
		},
		"a complete one": func(t *testing.T, store *lifecycle.Store, unfinished func() (session.ID, error)) {
			moved(t, store, completed(t, store, "auth"), false)
			id, err := unfinished()
			require.NoError(t, err)
			require.True(t, id.IsZero())
			quarantined, err := store.Quarantined()
			require.NoError(t, err)
			require.Len(t, quarantined, 1)
		},
		"whose successor was pruned": func(t *testing.T, store *lifecycle.Store, unfinished func() (session.ID, error)) {
			moved(t, store, made(t, store, "auth"), true)
			completed(t, store, "auth")
			completed(t, store, "pay")
			gone, err := store.Prune(t.Context(), lifecycle.Retention{Sessions: 1}, false)
			require.NoError(t, err)
			require.Len(t, gone, 1)
			id, err := unfinished()
			require.NoError(t, err)
			require.True(t, id.IsZero())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			test(t, store, func() (session.ID, error) {
				info, found, err := store.Unfinished("auth")
				require.NoError(t, err)
				require.Equal(t, found, !info.ID.IsZero())
				return info.ID, info.Err
			})
		})
	}
}

// An error about a quarantined session names its place.
func TestResolveWhatWasMoved(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := made(t, store, "auth")
	moved(t, store, id, true)
	for _, name := range []string{"", "latest", "auth", id.String()} {
		_, err := store.Resolve(name)
		var damaged *lifecycle.DamagedError
		require.ErrorAs(t, err, &damaged, "%q", name)
		require.Equal(t, id, damaged.ID)
		require.ErrorIs(t, err, lifecycle.ErrCorrupt)
		require.ErrorContains(t, err, "record 2 of the journal")
		require.ErrorContains(t, err, "the session was moved to .lopen/corrupted/"+id.String())
	}
	other := made(t, store, "pay")
	latest, err := store.Resolve("")
	require.NoError(t, err)
	require.Equal(t, other, latest)
}

// A session that its files call active is active while somebody holds it.
func TestListSeesWhoIsInterrupted(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	held, left, done := create(t, store, "auth"), interrupted(t, store, "auth"), completed(t, store, "auth")
	never := interrupted(t, store, "auth")
	require.NoError(t, os.Remove(path(store, "sessions", never.String(), ".lock")))
	status := func(id session.ID) session.Status {
		infos, err := store.List()
		require.NoError(t, err)
		for _, i := range infos {
			if i.ID == id {
				return i.Status
			}
		}
		return ""
	}
	require.Equal(t, session.StatusActive, status(held.ID()))
	require.Equal(t, session.StatusInterrupted, status(left))
	require.Equal(t, session.StatusInterrupted, status(never))
	require.Equal(t, session.StatusComplete, status(done))
	require.NoError(t, held.Pause(t.Context(), session.TriggerPaused, session.ExitPaused))
	require.NoError(t, held.Close(t.Context()))
	require.Equal(t, session.StatusPaused, status(held.ID()))
}
