package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/find"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/scratch"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// findAll searches the agents' own histories. It needs no store. Its settings are the user's, whose index it is: those of
// a project would have it made anew for each.
func (s *searchCall) findAll(ctx context.Context) (*find.Page, error) {
	if _, err := s.project(); err != nil {
		return nil, err
	}
	values, err := s.settings(nil)
	if err != nil {
		return nil, err
	}
	home, _ := s.userHome() // it is not needed where variables say more
	all := find.Agents{Home: home, Getenv: s.getenv}
	if values.Redact {
		if all.Hide, err = redact.New(values.RedactPatterns); err != nil {
			return nil, usagef("redact_patterns: %w", err)
		}
	}
	recipes, _ := s.recipes() // a run reports what is malformed
	all.Open = func(agent, session string) []string {
		return openSession(record.Attempt{Agent: agent, AgentSession: session}, recipes)
	}
	temp, err := scratch.New()
	if err != nil {
		return nil, err
	}
	defer temp.Close()
	all.Temp = temp.Path()
	all.Cache = userCache()
	return all.Find(ctx, s.query)
}

// userCache returns the folder in the user's cache that has the index of the agents' histories, or "" if the environment
// names no folder: a relative one would be below the one that the person is in.
func userCache() string {
	dir, err := os.UserCacheDir()
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "lopen")
}
