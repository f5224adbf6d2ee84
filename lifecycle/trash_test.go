package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// completed makes a complete session and closes it.
func completed(t *testing.T, store *lifecycle.Store, module string) session.ID {
	t.Helper()
	sess := create(t, store, module)
	require.NoError(t, sess.Complete(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	return sess.ID()
}

func retiredIDs(all []lifecycle.Retired) (ids []session.ID) {
	for _, x := range all {
		ids = append(ids, x.ID)
	}
	return ids
}

func TestPruneTakesTheOldestCompleted(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	var ids []session.ID
	for range 6 {
		ids = append(ids, completed(t, store, "auth"))
	}
	paused := create(t, store, "auth")
	require.NoError(t, paused.Pause(t.Context(), session.TriggerPaused, session.ExitPaused))
	require.NoError(t, paused.Close(t.Context()))
	active := create(t, store, "auth") // and held
	held, err := store.Open(ids[1])
	require.NoError(t, err)
	require.NoError(t, store.SetMeta(t.Context(), ids[0], func(m *lifecycle.Meta) error { m.Pinned = true; return nil }))

	limit := lifecycle.Retention{Sessions: 2}
	would, err := store.Prune(t.Context(), limit, true)
	require.NoError(t, err)
	require.Equal(t, ids[2:4], retiredIDs(would), "not the pinned one, not the held one")
	require.Contains(t, would[0].Why, "more than 2 completed")
	require.DirExists(t, path(store, "sessions", ids[2].String()), "a dry run")

	gone, err := store.Prune(t.Context(), limit, false)
	require.NoError(t, err)
	require.Equal(t, would, gone)
	require.NoDirExists(t, path(store, "sessions", ids[2].String()))
	again, err := store.Prune(t.Context(), limit, false)
	require.NoError(t, err)
	require.Empty(t, again)

	require.NoError(t, store.Restore(t.Context(), ids[2]))
	require.ErrorIs(t, store.Restore(t.Context(), ids[2]), lifecycle.ErrNotFound)
	st, _, err := store.Read(ids[2])
	require.NoError(t, err)
	require.Equal(t, session.StatusComplete, st.Status())
	r, err := store.Verify(ids[2])
	require.NoError(t, err)
	require.Equal(t, repair.Intact, r.Condition)
	require.NoError(t, held.Close(t.Context()))
	require.NoError(t, active.Close(t.Context()))
	require.EqualValues(t, 9, made(t, store, "auth").Counter, "no ID is given again")
}

func TestPruneByAgeBytesAndTrash(t *testing.T) {
	t.Parallel()
	now := day
	store, _, err := lifecycle.Init(t.TempDir(), lifecycle.Options{Now: func() time.Time { return now }})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	old := completed(t, store, "auth")
	now = now.Add(40 * 24 * time.Hour)
	young := completed(t, store, "auth")
	gone, err := store.Prune(t.Context(), lifecycle.Retention{Age: 30 * 24 * time.Hour}, false)
	require.NoError(t, err)
	require.Equal(t, []session.ID{old}, retiredIDs(gone))
	require.Contains(t, gone[0].Why, "30 days")

	younger := completed(t, store, "auth")
	gone, err = store.Prune(t.Context(), lifecycle.Retention{Bytes: store.Bytes(younger) + 1}, false)
	require.NoError(t, err)
	require.Equal(t, []session.ID{young}, retiredIDs(gone))

	trash, err := store.Trash()
	require.NoError(t, err)
	require.Equal(t, []session.ID{old, young}, retiredIDs(trash))
	now = now.Add(8 * 24 * time.Hour)
	last := completed(t, store, "auth")
	limit := lifecycle.Retention{Trash: 7 * 24 * time.Hour}
	for range 2 { // it is marked; what is known is not yet a day later
		gone, err = store.Prune(t.Context(), limit, false)
		require.NoError(t, err)
		require.Empty(t, gone)
		now = now.Add(24 * time.Hour)
	}
	gone, err = store.Prune(t.Context(), limit, false)
	require.NoError(t, err)
	require.Equal(t, []session.ID{old, young}, retiredIDs(gone))
	require.True(t, gone[0].ForGood)
	require.ErrorIs(t, store.Restore(t.Context(), old), lifecycle.ErrNotFound)
	left, err := filepath.Glob(path(store, "trash", "[^.]*"))
	require.NoError(t, err)
	require.Empty(t, left)
	gone, err = store.Prune(t.Context(), lifecycle.Retention{}, false)
	require.NoError(t, err)
	require.Empty(t, gone, "0 is no limit")
	require.DirExists(t, path(store, "sessions", last.String()))
}

func TestDeleteFreesWhatItSays(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, bulky(1)))
	require.NoError(t, sess.Flush(t.Context()))
	_, err := store.Delete(t.Context(), sess.ID())
	var busy *lifecycle.BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, os.Getpid(), busy.Owner.PID)
	require.NoError(t, sess.Close(t.Context()))
	before, at := du(t, store.Path()), store.Bytes(sess.ID())
	freed, err := store.Delete(t.Context(), sess.ID())
	require.NoError(t, err)
	require.Equal(t, at, freed)
	require.NoError(t, os.RemoveAll(path(store, "trash"))) // the folder that it made on its way
	require.Equal(t, before-freed, du(t, store.Path()))
	_, err = store.Delete(t.Context(), sess.ID())
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, _, err = store.Read(sess.ID())
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// TestPowerCutWhileRetiring cuts the power at every call of prune, restore and
// delete: a session is in one place, whole, or, once it is being deleted, nowhere.
func TestPowerCutWhileRetiring(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"prune", "restore", "delete"} {
		b := newBed(t, crashfs.Ext4)
		require.NoError(t, b.sess.Complete(t.Context()))
		require.NoError(t, b.sess.Close(t.Context()))
		limit := lifecycle.Retention{Age: time.Nanosecond}
		prune := func() {
			b.store = laterStore(t, b.disk)
			gone, err := b.store.Prune(t.Context(), limit, false)
			require.NoError(t, err)
			require.Len(t, gone, 1)
		}
		if what == "restore" {
			prune()
		}
		b.capture.Store(true)
		done := map[string]func(){
			"prune":   prune,
			"restore": func() { require.NoError(t, b.store.Restore(t.Context(), b.id)) },
			"delete": func() {
				_, err := b.store.Delete(t.Context(), b.id)
				require.NoError(t, err)
			},
		}[what]
		done()
		b.take("the end")
		places := map[string]int{}
		for i, p := range b.points {
			for _, v := range outcomes(p.disk, i) {
				crashStates.Add(1)
				store := laterStore(t, p.disk.Crash(v))
				place := "nowhere"
				if trash, err := store.Trash(); err == nil && len(trash) == 1 {
					place = "trash"
					require.NoError(t, store.Restore(t.Context(), b.id), v.Name)
				}
				r, err := store.Verify(b.id)
				if err == nil {
					require.Equal(t, repair.Intact, r.Condition, "%s before %s, %s", what, p.op, v.Name)
					if place == "nowhere" {
						place = "sessions"
					}
				} else {
					require.ErrorIs(t, err, lifecycle.ErrNotFound)
					require.Equal(t, "delete", what, "%s before %s: it is gone, %s", what, p.op, v.Name)
				}
				places[place]++
				if i == len(b.points)-1 {
					require.Equal(t, map[string]string{"prune": "trash", "restore": "sessions", "delete": "nowhere"}[what], place, v.Name)
				}
				infos, err := store.List()
				require.NoError(t, err)
				for _, info := range infos {
					require.NoError(t, info.Err, "half a session is never offered")
				}
			}
		}
		require.GreaterOrEqual(t, len(places), 2, "%s: %v", what, places)
	}
}

// laterStore opens a store a day later, so that what is complete is old.
func laterStore(t *testing.T, disk *crashfs.Disk) *lifecycle.Store {
	t.Helper()
	opts := simOptions
	opts.Now = func() time.Time { return day.Add(24 * time.Hour) }
	store, err := lifecycle.OpenOn(disk.FS(), opts)
	require.NoError(t, err)
	return store
}

// roleRandom does whatever a process may do to a store, at random, for a while, and
// prints the IDs that it was given.
func roleRandom(project string) error {
	ctx := context.Background()
	seed, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewChaCha8([32]byte(fmt.Appendf(nil, "%032s", seed))))
	store, _, err := lifecycle.Init(project, lifecycle.Options{})
	if err != nil {
		return err
	}
	defer store.Close(ctx)
	for range 40 {
		infos, err := store.List()
		if err != nil {
			return err
		}
		var id session.ID
		if len(infos) > 0 {
			id = infos[rng.IntN(len(infos))].ID
		}
		var what string
		switch n := rng.IntN(10); {
		case n < 3 || id.IsZero():
			what = "create"
			var sess *lifecycle.Session
			if sess, err = store.Create(ctx, "auth"); err == nil {
				fmt.Println(sess.ID())
				err = work(ctx, rng, sess)
			}
		case n < 5:
			what = "open"
			var sess *lifecycle.Session
			if sess, err = store.Open(id); err == nil {
				err = work(ctx, rng, sess)
			}
		case n < 6:
			what = "delete"
			_, err = store.Delete(ctx, id)
		case n < 7:
			what = "prune"
			_, err = store.Prune(ctx, lifecycle.Retention{Sessions: 2}, false)
		case n < 8:
			what = "pin"
			err = store.SetMeta(ctx, id, func(m *lifecycle.Meta) error { m.Pinned = !m.Pinned; return nil })
		case n < 9:
			what = "restore"
			if trash, terr := store.Trash(); terr == nil && len(trash) > 0 {
				err = store.Restore(ctx, trash[rng.IntN(len(trash))].ID)
			}
		default:
			what = "read"
			_, _, err = store.Read(id)
		}
		if err != nil && !errors.Is(err, lifecycle.ErrBusy) && !errors.Is(err, lifecycle.ErrNotFound) {
			return fmt.Errorf("%s %s: %w", what, id, err)
		}
	}
	return nil
}

func work(ctx context.Context, rng *rand.Rand, sess *lifecycle.Session) error {
	for i := range rng.IntN(5) {
		if err := sess.Change(session.TriggerTaskCompleted, turns(i)); err != nil {
			return err
		}
	}
	if rng.IntN(2) == 0 {
		if err := sess.Complete(ctx); err != nil {
			return err
		}
	}
	return sess.Close(ctx)
}

func TestEightProcessesDoEverything(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	var all []*another
	for range 8 {
		all = append(all, start(t, "random", filepath.Dir(store.Path())))
	}
	for i, p := range all {
		_, err := fmt.Fprintf(p.in, "%d", i)
		require.NoError(t, err)
		require.NoError(t, p.in.Close())
	}
	given := map[string]bool{}
	for _, p := range all {
		out, err := io.ReadAll(p.out)
		require.NoError(t, err)
		require.NoError(t, p.Wait())
		for _, id := range strings.Fields(string(out)) {
			require.False(t, given[id], "%s was given twice", id)
			given[id] = true
		}
	}
	require.NotEmpty(t, given)
	infos, err := store.List()
	require.NoError(t, err)
	for _, info := range infos {
		require.NoError(t, info.Err)
		r, err := store.Verify(info.ID)
		require.NoError(t, err)
		require.Equal(t, repair.Intact, r.Condition, "%s: %v %v", info.ID, r.Faults, r.Err)
	}
	_, err = os.Stat(path(store, "corrupted"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// The project moves between a kill and the next run, and is reached through a
// symlinked parent: no stored path decides anything.
func TestTheFolderMoves(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	project := filepath.Join(parent, "before")
	require.NoError(t, os.Mkdir(project, 0o700))
	_, _, err := lifecycle.Init(project, lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	p := start(t, "hold", project)
	id, err := session.ParseID(p.line(t))
	require.NoError(t, err)
	require.NoError(t, p.Process.Kill())
	_ = p.Wait()
	moved := filepath.Join(t.TempDir(), "after, with a space")
	require.NoError(t, os.Rename(project, moved))
	linked := filepath.Join(parent, "link")
	require.NoError(t, os.Symlink(filepath.Dir(moved), linked))
	for _, at := range []string{moved, filepath.Join(linked, "after, with a space")} {
		store, err := lifecycle.Open(at, lifecycle.Options{Now: clock()})
		require.NoError(t, err)
		latest, err := store.Resolve("latest")
		require.NoError(t, err)
		require.Equal(t, id, latest)
		sess, err := store.Open(id)
		require.NoError(t, err)
		require.Equal(t, 20, sess.State().Header().TurnCount)
		require.NoError(t, store.Close(t.Context()))
	}
}

// du counts what a folder takes on the disk with the tool of that name.
func du(t *testing.T, dir string) int64 {
	t.Helper()
	out, err := exec.Command("du", "-s", "-B1", dir).Output()
	if err != nil {
		t.Skipf("du -s -B1 is not to be had here: %v", err)
	}
	var n int64
	_, err = fmt.Sscan(string(out), &n)
	require.NoError(t, err)
	return n
}

// Opening a session removes the temporary files that crashed holders left, but not the
// file that another process writes to name the session: this is done under the store
// lock, not the lease.
func TestNamingWhileOpening(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := completed(t, store, "auth")
	temp := func(of string) string { return path(store, "sessions", id.String(), writer.TempName(of)) }
	theirs, crashed := temp("meta.json"), temp("state.json")
	for _, name := range []string{theirs, crashed} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	sess, err := store.Open(id)
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
	require.NoFileExists(t, crashed)
	require.FileExists(t, theirs)
	require.NoError(t, store.SetMeta(t.Context(), id, func(m *lifecycle.Meta) error { m.Name = "x"; return nil }))
	require.NoFileExists(t, theirs, "of one that crashed: whoever has the store lock is the only one")
}

// If the note of a session in the trash is damaged, nobody knows since when the session
// is there. It does not expire.
func TestDamagedNoteInTheTrashDoesNotExpire(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := completed(t, store, "auth")
	_, err := store.Prune(t.Context(), lifecycle.Retention{Age: 1}, false)
	require.NoError(t, err)
	write(t, path(store, "trash", id.String()+".json"), "{")
	require.Empty(t, emptied(t, store))
	note, err := os.ReadFile(path(store, "trash", id.String()+".json"))
	require.NoError(t, err)
	require.Equal(t, "{", string(note), "nor is it due")
	require.NoError(t, store.Restore(t.Context(), id))
}
