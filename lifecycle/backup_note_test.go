package lifecycle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer"
)

// Backups to two folders at the same time are both noted: one note waits for the other.
func TestNoteOfABackupWaitsForAnother(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	root, err := writer.OpenFS(store.Path())
	require.NoError(t, err)
	defer root.Close()
	other, err := writer.TryLock(root, ".lock", writer.Owner{})
	require.NoError(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	note := lifecycle.BackupNote{Folder: "/there", Number: 1, At: day}
	require.ErrorIs(t, store.NoteBackup(ended, note), context.Canceled)
	_, err = store.Backups()
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	require.NoError(t, other.Unlock())
	require.NoError(t, store.NoteBackup(t.Context(), note))
	notes, err := store.Backups()
	require.NoError(t, err)
	require.Equal(t, []lifecycle.BackupNote{note}, notes)
}
