package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A ChangedTask is a complete task some of whose files are not any more what it
// left behind.
type ChangedTask struct {
	Task  string // ID
	Paths []string
}

// ChangedTasks compares what the session's tasks left behind with what the files are
// now: content that differs belongs to the task that changed it last. all says that
// not one of the files is as it was, which a list would not make clearer. The changes
// are those that Look returns.
func (s *Session) ChangedTasks(ctx context.Context) (changed []ChangedTask, all bool, changes []files.Change, err error) {
	left := map[string]session.FileChange{}
	by := map[string]string{}
	err = s.store.Log(s.id, 0, func(r session.Record) error {
		for _, a := range r.Attempts {
			for _, f := range a.Files {
				if f.From != "" {
					delete(left, f.From)
				}
				left[f.Path], by[f.Path] = f, a.Task
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, nil, fmt.Errorf("tasks whose files changed: %w", err)
	}
	s.kept.mu.Lock()
	changes, err = s.look(ctx)
	now := s.kept.seen
	s.kept.mu.Unlock()
	if err != nil {
		return nil, false, nil, err
	}
	paths := map[string][]string{}
	differ, whole := 0, 0
	for path, f := range left {
		t, ok := s.State().Task(by[path])
		if !ok || t.State != session.TaskComplete {
			continue // it runs again, or a rewind took it back
		}
		whole++
		after := ""
		if is := now.Find(path); is != nil {
			after = is.Hash.String()
		}
		if after == f.After {
			continue
		}
		differ++
		paths[t.ID] = append(paths[t.ID], path)
	}
	for id, p := range paths {
		slices.Sort(p)
		changed = append(changed, ChangedTask{id, p})
	}
	slices.SortFunc(changed, func(a, b ChangedTask) int { return strings.Compare(a.Task, b.Task) })
	return changed, whole > 1 && differ == whole, changes, nil
}
