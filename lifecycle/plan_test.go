package lifecycle_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/plan"
)

func TestCreatePlanNeverOverwrites(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	_, err := store.Plan("auth")
	require.ErrorIs(t, err, fs.ErrNotExist)
	const mine = "# Mine\r\n\r\n* [ ] A"
	require.NoError(t, store.CreatePlan("auth", []byte(mine)))
	require.ErrorIs(t, store.CreatePlan("auth", []byte("- [ ] B\n")), fs.ErrExist)
	name := filepath.Join(store.Project().Name(), lifecycle.PlanPath("auth"))
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, mine, string(data))

	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Symlink("nowhere", name))
	require.ErrorIs(t, store.CreatePlan("auth", []byte("- [ ] B\n")), fs.ErrExist, "a dangling link is somebody's too")
}

func TestEditPlan(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	require.NoError(t, store.CreatePlan("auth", []byte("* [ ] A\r\n* [x] B")))
	base, err := store.Plan("auth")
	require.NoError(t, err)
	name := path(store, "modules", "auth", "plan.md")
	write(t, name, "* [ ] New\r\n* [ ] A\r\n* [x] B") // a person, in between
	after, err := store.EditPlan("auth", base, plan.Boxes(map[string]bool{"a": true, "b": false}))
	require.NoError(t, err)
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "* [ ] New\r\n* [x] A\r\n* [ ] B", string(data))
	require.Equal(t, data, after.Source())

	write(t, name, "* [ ] A")
	_, err = store.EditPlan("auth", after, plan.Boxes(map[string]bool{"a": true, "b": true}))
	var conflict *plan.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, []string{"b"}, conflict.Missing)
	_, err = store.EditPlan("other", after, plan.Boxes(map[string]bool{"a": true}))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLockModule(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	lock, err := store.LockModule("auth")
	require.NoError(t, err)
	other := storeIn(t, store.Project().Name())
	_, err = other.LockModule("auth")
	var busy *lifecycle.BusyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, os.Getpid(), busy.Owner.PID)
	pay, err := other.LockModule("pay")
	require.NoError(t, err, "another module is free")
	require.NoError(t, pay.Unlock())
	require.NoError(t, lock.Unlock())
	lock, err = other.LockModule("auth")
	require.NoError(t, err)
	require.NoError(t, lock.Unlock())
}
