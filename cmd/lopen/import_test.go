package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/histories"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
)

// Who stops an import is told how it goes on.
func TestAnInterruptedImportSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a, taken := &app{stdout: terminal.New(io.Discard), stderr: terminal.New(io.Discard)}, 0
	err := a.importAll(ctx, "claude", func(yield func(*histories.Result, error) bool) {
		for range 3 {
			cancel()
			if taken++; !yield(&histories.Result{}, nil) {
				return
			}
		}
	}, &imported{})
	require.ErrorContains(t, err, "interrupted: the same command goes on")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, taken)
}

// What lopen may not read is not to be made writable, as is said of paths of its own.
func TestNothingIsToBeWritableToBeRead(t *testing.T) {
	t.Parallel()
	err := noneRead("claude", &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrPermission})
	require.ErrorContains(t, err, "no history of claude can be read: open /x: permission denied; who calls lopen needs the right to read it")
	require.Equal(t, loop.ExitFailed, exitCode(err))
	require.Empty(t, hint(err))
	damaged := errors.New("damaged")
	require.ErrorIs(t, noneRead("claude", damaged), damaged)
}

// Both texts are told, and what both say once.
func TestBothTold(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{{"", "a", "a"}, {"a", "", "a"}, {"a", "b", "a\nb"}, {"no room\n  df", "no room\n  df", "no room\n  df"}, {"x\ny", "y", "x\ny"}} {
		require.Equal(t, c[2], bothTold(c[0], c[1]), c)
	}
}
