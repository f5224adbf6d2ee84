package rewind

import (
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

// Needed returns the numbers of the entries that rewinds of the given sessions need. all are
// all entries in order. For each session these are the entry after its last rewind that a
// person asked for, with the entry to which undo returns and the target of the rewind, and
// the entry before its last begun rewind, with the target. If the session made no entry since
// the latter, that rewind may have to be finished. Then the entries since its target are
// needed as well, because its plan is made from them.
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
			if e.Reason == checkpoint.AfterRewind { // the plan looks from the target of that rewind on
				start = min(start, e.Target)
			}
		}
	}
	return needed
}

// FailedTrees returns the numbers of the entries of the given sessions that have the tree of a
// failed task whose files were set back.
func FailedTrees(all []*checkpoint.Entry, of func(session string) bool) map[uint64]bool {
	failed := map[uint64]bool{}
	for _, e := range all {
		if e.SetBack() && e.Removed == "" && of(e.Session) {
			failed[e.Number] = true
		}
	}
	return failed
}

// NeededByFailed returns the numbers of the entries that are needed to bring back what failed
// tasks left: their trees, which FailedTrees returned, the targets of setting them back, and
// the entries after that.
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
