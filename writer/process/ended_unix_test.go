//go:build unix

package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/internal/proc"
)

// noted is a child's lock whose command has ended.
func noted(t *testing.T, dir writer.FS) *Lock {
	t.Helper()
	l, err := Hold(dir, childName)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Release() })
	require.NoError(t, l.Forget())
	return l
}

func ended(t *testing.T, dir writer.FS) *Ended {
	t.Helper()
	e, err := ReadEnded(dir, childName)
	require.NoError(t, err)
	return e
}

func TestHowTheCommandEndedIsRecorded(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	require.Nil(t, ended(t, dir), "there is no file")
	l, err := Hold(dir, childName)
	require.NoError(t, err)
	require.Nil(t, ended(t, dir), "no command has begun")
	require.NoError(t, l.Release())

	l = noted(t, dir)
	require.Nil(t, ended(t, dir), "it has begun")
	require.NoError(t, l.Record(os.Getpid(), "a command"))
	saw := Ended{Iteration: 3, Exit: -1, Signal: "SIGTERM"}
	require.NoError(t, NoteEnded(l.File(), saw))
	require.Equal(t, &saw, ended(t, dir))
	require.NoError(t, l.Release())

	// The check has the lock after it, and does not take that away.
	l, err = Hold(dir, childName)
	require.NoError(t, err)
	require.NoError(t, l.Record(os.Getpid(), "the check"))
	require.Equal(t, &saw, ended(t, dir))
	require.Equal(t, "the check", decodeGroup([]byte(get(t, dir, childName))[:childRecord]).Command)
	require.NoError(t, l.Release())

	// The next command begins.
	_ = noted(t, dir)
	require.Nil(t, ended(t, dir))
}

// Whoever writes last, the events say whether it was a success, and the keeper how it ended.
func TestEventsSayMoreThanAnExitCode(t *testing.T) {
	t.Parallel()
	says, saw := Ended{Iteration: 3}, Ended{Iteration: 3, Exit: 0, Success: true}
	for name, write := range map[string]func(*Lock) error{
		"the keeper is last": func(l *Lock) error {
			_ = l.Ended(says)
			return NoteEnded(l.File(), saw)
		},
		"the holder is last": func(l *Lock) error {
			_ = NoteEnded(l.File(), saw)
			return l.Ended(says)
		},
	} {
		dir := openTemp(t)
		require.NoError(t, write(noted(t, dir)))
		require.Equal(t, &Ended{Iteration: 3}, ended(t, dir), name)
	}
	dir := openTemp(t)
	l := noted(t, dir)
	require.NoError(t, l.Ended(Ended{Iteration: 3, Success: true}))
	require.Equal(t, &Ended{Iteration: 3, Success: true}, ended(t, dir), "the keeper was killed")
	require.NoError(t, NoteEnded(l.File(), Ended{Iteration: 3, Exit: 1}))
	require.Equal(t, &Ended{Iteration: 3, Exit: 1, Success: true}, ended(t, dir))
	require.NoError(t, NoteEnded(l.File(), Ended{Iteration: 4, Exit: 1}))
	require.Equal(t, &Ended{Iteration: 4, Exit: 1}, ended(t, dir), "what is said is of another one")
}

// A command can write what it likes in the file that it inherits.
func TestForgedEndOfACommand(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	for name, record := range map[string]string{
		"none": "", "no JSON": "{", "no iteration": `{"success":true,"boot":"` + proc.BootID() + `"}`,
		"another boot": `{"iteration":3,"success":true,"boot":"another"}`,
	} {
		l := noted(t, dir)
		_, err := l.File().WriteAt([]byte(record), seenAt)
		require.NoError(t, err)
		require.Nil(t, ended(t, dir), name)
		require.NoError(t, l.Release())
	}
	require.NoError(t, os.Truncate(filepath.Join(dir.Name(), childName), childBytes-1))
	require.Nil(t, ended(t, dir))
}
