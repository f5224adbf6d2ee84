package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/backup"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
)

func TestSessionOfABackup(t *testing.T) {
	t.Parallel()
	f, err := backup.Create(t.TempDir(), backup.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	for _, ids := range [][]string{{"auth-20260101-1", "auth-20260102-1"}, {"auth-20260101-12", "todo-20260101-1", "auth-20260103-2", "auth-20260103-10"}} {
		h := &bundle.Header{At: time.Unix(1, 0)}
		for _, id := range ids {
			h.Sessions = append(h.Sessions, bundle.Session{ID: id})
		}
		w, err := f.Begin(t.Context(), h, false)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	for _, c := range []struct {
		number   uint64
		typed    string
		id       string
		of       uint64
		expected error
	}{
		{0, "auth-20260101-1", "auth-20260101-1", 1, nil}, // and the prefix of one in a newer backup
		{0, "auth-20260101", "auth-20260101-12", 2, nil},
		{0, "auth-20260102", "auth-20260102-1", 1, nil},
		{0, "auth", "auth-20260103-10", 2, nil},
		{1, "auth", "auth-20260102-1", 1, nil},
		{0, "t", "todo-20260101-1", 2, nil},
		{1, "todo", "", 0, lifecycle.ErrNotFound},
		{3, "auth", "", 0, lifecycle.ErrNotFound},
		{0, "auth-", "", 0, lifecycle.ErrAmbiguous},
		{0, "x", "", 0, lifecycle.ErrNotFound},
	} {
		s, id, err := backupOf(f, c.number, c.typed)
		require.ErrorIs(t, err, c.expected, c.typed)
		require.Equal(t, c.id, id, c.typed)
		if err == nil {
			require.Equal(t, c.of, s.Snapshot().Number, c.typed)
			require.NoError(t, s.Close())
		}
	}
}
