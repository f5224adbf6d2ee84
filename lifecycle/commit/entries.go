package commit

import (
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// maxOpPaths bounds the paths that an operation names. Its count has no bound.
const maxOpPaths = 20

// filesChanged collects changes of files as operations, one for each kind of change.
type filesChanged struct {
	task string
	ops  []record.Op
}

func (f *filesChanged) add(kind, path string) {
	i := slices.IndexFunc(f.ops, func(op record.Op) bool { return op.To == kind })
	if i < 0 {
		i = len(f.ops)
		f.ops = append(f.ops, record.Op{Name: record.OpFilesChanged, Task: f.task, To: kind})
	}
	op := &f.ops[i]
	if op.Count++; len(op.Paths) < maxOpPaths {
		op.Paths = append(op.Paths, strings.ToValidUTF8(path, "\ufffd"))
	}
}

// CheckpointMade returns the entry of a checkpoint, with the changes since the last look.
func CheckpointMade(m *checkpoint.Entry, changes []files.Change) actors.Entry {
	f := filesChanged{task: m.Task, ops: []record.Op{{Name: record.OpCheckpointMade, Task: m.Task, To: m.ID.String()}}}
	for _, c := range changes {
		f.add(string(c.Kind), c.Path)
	}
	return actors.Entry{Checkpoint: m.ID.String(), Ops: f.ops}
}

// AttemptRecorded returns the entry of an attempt. size is its encoded size in bytes. known
// says that a checkpoint has recorded the changes of the files, which are then left out.
func AttemptRecorded(a *record.Attempt, size int, known bool) actors.Entry {
	f := filesChanged{task: a.Task, ops: []record.Op{{Name: record.OpAttemptRecorded, Task: a.Task, To: a.Then}}}
	if !known {
		for _, c := range a.Files {
			f.add(c.Change, c.Path)
		}
		if a.MoreFiles > 0 {
			f.ops = append(f.ops, record.Op{Name: record.OpFilesChanged, Task: a.Task, Count: a.MoreFiles})
		}
	}
	for _, op := range f.ops {
		for _, path := range op.Paths {
			size += len(path) + len(`"",`)
		}
	}
	return actors.Entry{Attempt: a, Size: size, Ops: f.ops}
}

// RewindEnded returns the entry of the end of a rewind, with what it did to the files, and with
// those that it was to change and left as they are.
func RewindEnded(r *session.Rewinding, changes []checkpoint.Change, kept []checkpoint.Retained) actors.Entry {
	var f filesChanged
	for _, c := range changes {
		f.add(string(rewound[c.Kind]), c.Path)
	}
	return actors.Entry{Rewind: r, Ended: true, Ops: append(f.ops, filesKept(r.Task, kept)...)}
}

// filesKept returns operations that name paths that a rewind left as they are, one for each
// reason. The last of maxOpPaths reasons stands for the others as well.
func filesKept(task string, kept []checkpoint.Retained) (ops []record.Op) {
	for _, k := range kept {
		why := k.Reason()
		if k.Cause != "" {
			cause, _, _ := strings.Cut(k.Cause, ";") // without the command that lets it be changed
			why += ": " + cause
		}
		i := slices.IndexFunc(ops, func(op record.Op) bool { return op.To == why })
		if i < 0 && len(ops) == maxOpPaths {
			i = len(ops) - 1
		} else if i < 0 {
			i = len(ops)
			ops = append(ops, record.Op{Name: record.OpFilesKept, Task: task, To: why})
		}
		op := &ops[i]
		if op.Count++; len(op.Paths) < maxOpPaths {
			op.Paths = append(op.Paths, strings.ToValidUTF8(k.Path, "\ufffd"))
		}
	}
	return ops
}

// RewindGivenUp returns the entry of the end of a rewind that is given up. undo is the
// checkpoint that the next Undo returns to. r.After is the checkpoint of the files as they are then,
// if one was made. kept are the paths that the rewind left as they are.
func RewindGivenUp(r *session.Rewinding, undo string, kept []checkpoint.Retained) actors.Entry {
	return actors.Entry{Rewind: &session.Rewinding{To: r.To, Before: undo, After: r.After, Task: r.Task}, Ended: true, Ops: filesKept(r.Task, kept)}
}

// rewound maps what a rewind does to a file to the change that a look at the files would
// report.
var rewound = map[checkpoint.Kind]files.Kind{
	checkpoint.KindCreate: files.Created, checkpoint.KindOverwrite: files.Modified, checkpoint.KindRetarget: files.Modified,
	checkpoint.KindDelete: files.Deleted, checkpoint.KindMode: files.Mode,
	checkpoint.KindAway: files.Deleted, checkpoint.KindBack: files.Created,
}
