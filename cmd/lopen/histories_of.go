package main

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/lifecycle/agents"
)

// historiesOf returns the histories of a project: those whose agent worked in its folder, in one
// below it, or in one of its work trees. A folder that is gone counts if the store has a session
// of a history from there, or if the history names the same repository.
func (a *app) historiesOf(ctx context.Context, project string, known func(*agents.History) bool, all []agents.History, report *imported) []agents.History {
	p := placer{app: a, project: project, known: map[string]place{}}
	identity, _ := git.Identify(ctx, project, a.environ)
	p.remote, p.root = identity.Remote, identity.Root
	heads := make([]agents.Head, len(all))
	for i := range all {
		head, err := all[i].Head()
		if err != nil {
			report.NotRead = append(report.NotRead, err.Error())
		}
		heads[i] = head
		if p.of(head) == placeGone && known(&all[i]) { // the store came along with the project
			p.known[head.Cwd] = placeHere
		}
	}
	var ours []agents.History
	moved := map[string]*movedHistories{}
	for i := range all {
		switch p.of(heads[i]) {
		case placeHere:
			ours = append(ours, all[i])
		case placeGone:
			cwd := heads[i].Cwd
			if filepath.Base(cwd) != filepath.Base(project) {
				continue
			}
			if moved[cwd] == nil {
				moved[cwd] = &movedHistories{Cwd: cwd, Path: all[i].Path}
			}
			m := moved[cwd]
			if m.Histories++; m.Histories > 1 {
				m.Path = common(m.Path, all[i].Path)
			}
		}
	}
	for _, cwd := range slices.Sorted(maps.Keys(moved)) {
		report.Moved = append(report.Moved, *moved[cwd])
	}
	return ours
}

// common returns the folder that two paths are in.
func common(a, b string) string {
	for !strings.HasPrefix(b, a+string(filepath.Separator)) && a != b && a != filepath.Dir(a) {
		a = filepath.Dir(a)
	}
	return a
}

// A place says whose a folder is that an agent worked in.
type place int

const (
	placeElsewhere place = iota
	placeHere
	placeGone
)

// placer finds whose folders are.
type placer struct {
	*app
	project, remote, root string
	known                 map[string]place // by cwd
}

func (p *placer) of(h agents.Head) place {
	if h.Cwd == "" || !filepath.IsAbs(h.Cwd) {
		return placeElsewhere
	}
	at, ok := p.known[h.Cwd]
	if !ok {
		at = p.look(h.Cwd)
		p.known[h.Cwd] = at
	}
	same := p.remote != "" && git.NormalRemote(h.Remote) == p.remote || p.root != "" && h.Root == p.root
	if at == placeGone && same {
		return placeHere
	}
	return at
}

func (p *placer) look(cwd string) place {
	resolved, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		if rel, err := filepath.Rel(p.project, cwd); err == nil && filepath.IsLocal(rel) {
			return placeHere
		}
		return placeGone
	}
	if home, _ := p.search(resolved); git.Same(home, p.project) {
		return placeHere
	}
	return placeElsewhere
}
