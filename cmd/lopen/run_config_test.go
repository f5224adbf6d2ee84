package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A session that was given no idle_timeout does not remember that there is none: a resumed
// run that nobody watches would have no bound.
func TestNoIdleTimeoutIsNotRemembered(t *testing.T) {
	t.Parallel()
	store, _, err := lifecycle.Init(t.TempDir(), lifecycle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { release(store) })
	r := runCall{app: &app{environ: []string{"HOME=" + t.TempDir()}}}
	v, err := r.remembered(store, session.Settings{Command: []string{"claude"}, Unit: "leaf"})
	require.NoError(t, err)
	require.Equal(t, settings.SourceDefault, v.Source("idle_timeout"))
	v, err = r.remembered(store, session.Settings{Command: []string{"claude"}, Unit: "leaf", IdleTimeout: 5})
	require.NoError(t, err)
	require.Equal(t, settings.SourceFlag, v.Source("idle_timeout"))
}
