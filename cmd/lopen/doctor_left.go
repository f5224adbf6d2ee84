package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/writer/plain"
)

// leftBehind reports each folder of the project in which temporary files are that a rewind could not
// remove, as the newest checkpoint saw them, with the command that removes them.
func leftBehind(store *lifecycle.Store) (all []repair.Check) {
	cps, err := store.Checkpoints(nil)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return nil
	}
	if err != nil {
		return []repair.Check{repair.Failed("project", err)}
	}
	defer cps.Close()
	entries, _, err := cps.List()
	if err != nil {
		return []repair.Check{repair.Failed("project", err)}
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e *checkpoint.Entry) bool { return e.Removed != "" })
	if len(entries) == 0 {
		return nil
	}
	number := map[string]int{}
	for f, err := range cps.Tree(entries[len(entries)-1].Root).All() {
		if err != nil {
			break // the check of the contents and that of sessions report it
		}
		if !checkpoint.Temporary(f.Path) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(store.Project().Name(), f.Path)); err == nil {
			number[path.Dir(f.Path)]++
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(number)) {
		all = append(all, repair.Check{
			Name:  "project",
			Found: fmt.Sprintf("in %s %s of a rewind that could not remove them", shown(dir), plain.Some(number[dir], "temporary file")),
			Mend:  "no rewind needs them: rm " + quoted([]string{filepath.Join(store.Project().Name(), dir)}) + "/.lopen-rewind-[0-9a-f]*",
		})
	}
	return all
}
