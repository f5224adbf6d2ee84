package lifecycle_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/repair"
)

func findings(all []repair.Check) map[string]repair.Check {
	m := map[string]repair.Check{}
	for _, f := range all {
		m[f.Name] = f
	}
	return m
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	require.Empty(t, store.Preflight())
	require.NoError(t, os.Chmod(store.Path(), 0o755))
	require.Contains(t, findings(store.Preflight())["permissions"].Mend, "chmod 700 "+store.Path())
	require.NoError(t, os.Chmod(store.Path(), 0o700))
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(store.Path(), 1234, 1234))
		require.Contains(t, findings(store.Preflight())["permissions"].Found, "another user")
		require.NoError(t, os.Chown(store.Path(), 0, 0))
	}
	left, err := os.ReadDir(store.Path())
	require.NoError(t, err)
	for _, e := range left {
		require.NotContains(t, e.Name(), "preflight")
	}
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	good, bad := completed(t, store, "auth"), interrupted(t, store, "auth")
	all := findings(store.Doctor(t.Context()))
	require.Contains(t, all["fsync"].Found, "fdatasync of 512 bytes takes")
	require.Contains(t, all["sessions"].Found, "2 of 2 are intact")
	for name, f := range all {
		require.False(t, f.Problem, name)
	}
	require.Equal(t, "interrupted, intact", all[bad.String()].Found)
	require.Contains(t, all[bad.String()].Mend, "lopen run auth")
	ruin(t, path(store, "sessions", bad.String()))
	all = findings(store.Doctor(t.Context()))
	require.True(t, all[bad.String()].Problem)
	require.Contains(t, all[bad.String()].Mend, "lopen session recover "+bad.String())
	require.NotContains(t, all, good.String(), "what is intact is counted only")
	_, err := store.Open(bad)
	require.Error(t, err)
	all = findings(store.Doctor(t.Context()))
	require.Contains(t, all[bad.String()].Found, "the session was moved to .lopen/corrupted/")
	require.Equal(t, "lopen session recover "+bad.String(), all[bad.String()].Mend)
	require.NoError(t, os.Remove(path(store, "ballast")))
	require.Contains(t, findings(store.Doctor(t.Context()))["reserve"].Found, "none")
}
