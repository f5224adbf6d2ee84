package main

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// What is interrupted has a moment to end by itself; a call that does not return is left alone.
func TestAwaitEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		v, err := awaitEnd(ctx, func() (string, error) { return "removed", ctx.Err() })
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "removed", v)
		hangs := make(chan struct{})
		_, err = awaitEnd(ctx, func() (string, error) { <-hangs; return "late", nil })
		require.ErrorIs(t, err, context.Canceled)
		close(hangs)
	})
}
