package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
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
	v, _, err := r.remembered(store, session.Settings{Command: []string{"claude"}, Unit: "leaf"})
	require.NoError(t, err)
	require.Equal(t, settings.SourceDefault, v.Source("idle_timeout"))
	v, _, err = r.remembered(store, session.Settings{Command: []string{"claude"}, Unit: "leaf", IdleTimeout: 5})
	require.NoError(t, err)
	require.Equal(t, settings.SourceSession, v.Source("idle_timeout"))
}

// A project's idle_timeout tightens where there is none, and would loosen what an unattended run has.
func TestAProjectsIdleTimeoutIsBounded(t *testing.T) {
	t.Parallel()
	for from, want := range map[settings.Source]loop.Config{
		settings.SourceDefault: {IdleTimeout: 24 * time.Hour, UnwatchedIdle: unattendedIdle},
		settings.SourceProject: {IdleTimeout: unattendedIdle},
		settings.SourceUser:    {IdleTimeout: 24 * time.Hour},
		settings.SourceHere:    {IdleTimeout: 24 * time.Hour},
	} {
		cfg := loop.Config{IdleTimeout: 24 * time.Hour}
		boundIdle(&cfg, from)
		require.Equal(t, want, cfg, from)
	}
}
