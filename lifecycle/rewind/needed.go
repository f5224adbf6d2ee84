package rewind

import (
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

// Needed are the numbers of the entries that rewinds of some sessions need, of all entries
// in their order. Of each session these are its newest rewind that ended and set no task
// back, what undo goes back to and the target of that, and the newest that began, with its
// target. Where the session made nothing since, that one may have to be finished: its plan
// is made again from the entries since its target.
func Needed(all []*checkpoint.Entry, of func(session string) bool) map[uint64]bool {
	newest, begun, ended := map[string]*checkpoint.Entry{}, map[string]*checkpoint.Entry{}, map[string]*checkpoint.Entry{}
	for _, e := range all {
		newest[e.Session] = e
		switch {
		case e.Removed != "" || !of(e.Session):
		case e.Reason == checkpoint.BeforeRewind:
			begun[e.Session] = e
		case e.Reason == checkpoint.AfterRewind && e.Task == "":
			ended[e.Session] = e
		}
	}
	needed := map[uint64]bool{}
	for _, e := range ended {
		needed[e.Number], needed[e.Parent], needed[e.Target] = true, true, true
	}
	for _, before := range begun {
		needed[before.Number], needed[before.Target] = true, true
		if newest[before.Session] != before {
			continue
		}
		start := before.Target
		for _, e := range slices.Backward(all) {
			if e.Number < start || e.Number > before.Number {
				continue
			}
			needed[e.Number] = true
			if e.Reason == checkpoint.AfterRewind { // what it brought back is looked for from there on
				start = min(start, e.Target)
			}
		}
	}
	return needed
}

// FailedTrees are the numbers of those of some entries that have the tree of a failed task
// of some sessions whose files were set back.
func FailedTrees(all []*checkpoint.Entry, of func(session string) bool) map[uint64]bool {
	failed := map[uint64]bool{}
	for _, e := range all {
		if e.SetBack() && e.Removed == "" && of(e.Session) {
			failed[e.Number] = true
		}
	}
	return failed
}

// NeededByFailed are the numbers of the entries that it takes to bring back what failed
// tasks left: their trees, which FailedTrees returned, what they were set back to, and what
// came of that.
func NeededByFailed(all []*checkpoint.Entry, failed map[uint64]bool) map[uint64]bool {
	needed := map[uint64]bool{}
	for _, e := range all {
		switch {
		case failed[e.Number]:
			needed[e.Number], needed[e.Target] = true, true
		case e.Reason == checkpoint.AfterRewind && failed[e.Parent]:
			needed[e.Number] = true
		}
	}
	return needed
}
