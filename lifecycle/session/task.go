package session

import (
	"slices"
	"time"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// MaxTaskDepth bounds how deeply tasks may be nested.
const MaxTaskDepth = 64

// The bounds of a task's strings, in bytes.
const (
	maxTaskID    = 1 << 10
	maxTaskName  = 64 << 10
	maxLastError = 16 << 10
)

// A Task is an item of the plan. An ID has at most 1 KiB, a name 64 KiB, an error 16 KiB.
// Its slices are shared between States: they must not be changed in place once the
// Task was put into an Edit.
type Task struct {
	ID          string    `json:"id,omitzero"` // without control characters, quotes and backslashes
	Kind        Kind      `json:"kind,omitzero"`
	Name        string    `json:"name,omitzero"`
	State       TaskState `json:"state,omitzero"`
	Parent      string    // "" for one of the State's roots
	Children    []string  // in the plan's order
	DependsOn   []string  `json:"dependsOn,omitzero"` // IDs; that they exist is not required
	Box         Box       `json:"box,omitzero"`
	Attempts    int       `json:"attempts,omitzero"`  // failed or done, since the task last began anew
	LastError   string    `json:"lastError,omitzero"` // of the last attempt, if it failed
	StartedAt   time.Time `json:"startedAt,omitzero"`
	CompletedAt time.Time `json:"completedAt,omitzero"`
	Log         []Attempt `json:"log,omitzero"` // every attempt there was
	Extra       []Field   // fields that this version does not know, written back as they are
}

// An Attempt is one start of the command on a task.
type Attempt struct {
	Number    int       `json:"number,omitzero"` // from 1
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Exit      int       `json:"exit"`            // exit code; -1 when a signal ended it
	Signal    string    `json:"signal,omitzero"` // the signal's name, if one ended it
	Error     string    `json:"error,omitzero"`  // why it counts as failed; "" when it does not
	Artifacts []string  `json:"artifacts,omitzero"`
}

// A Field is a member of a JSON object that is written back without being understood.
// Its key is none that this version knows; its value must not be written to.
type Field struct {
	Key   string
	Value strictjson.Value
}

// leaf says whether the task is one that runs: those are what progress counts.
func (t *Task) leaf() bool {
	return len(t.Children) == 0 && t.Kind != KindComponent && t.Kind != KindModule
}

// Equal says whether two tasks are written alike.
func (t *Task) Equal(u *Task) bool {
	return t.ID == u.ID && t.Kind == u.Kind && t.Name == u.Name && t.Parent == u.Parent && t.sameProgress(u) &&
		sameIDs(t.Children, u.Children) && sameIDs(t.DependsOn, u.DependsOn) &&
		slices.EqualFunc(t.Log, u.Log, Attempt.equal) &&
		slices.EqualFunc(t.Extra, u.Extra, func(a, b Field) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) })
}

// sameProgress compares what became of two tasks.
func (t *Task) sameProgress(u *Task) bool {
	return t.State == u.State && t.Box == u.Box && t.Attempts == u.Attempts && t.LastError == u.LastError &&
		t.StartedAt.Equal(u.StartedAt) && t.CompletedAt.Equal(u.CompletedAt)
}

func (a Attempt) equal(b Attempt) bool {
	return a.Number == b.Number && a.StartedAt.Equal(b.StartedAt) && a.EndedAt.Equal(b.EndedAt) && a.Exit == b.Exit &&
		a.Signal == b.Signal && a.Error == b.Error && slices.Equal(a.Artifacts, b.Artifacts)
}

// sameIDs compares two lists, at once when they are one and the same, as those of
// a parent with a million children mostly are.
func sameIDs(a, b []string) bool {
	return same(a, b) || slices.Equal(a, b)
}

// same says whether two slices are one.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// normal brings a task to what JSON keeps: times in UTC without a monotonic
// clock. It cuts the room behind the slices off, so that an append to a slice
// that Task returned makes a copy.
func (t *Task) normal() {
	t.StartedAt, t.CompletedAt = utc(t.StartedAt), utc(t.CompletedAt)
	t.Children, t.DependsOn = slices.Clip(t.Children), slices.Clip(t.DependsOn)
	t.Log, t.Extra = slices.Clip(t.Log), slices.Clip(t.Extra)
	odd := func(a Attempt) bool { return a.StartedAt != utc(a.StartedAt) || a.EndedAt != utc(a.EndedAt) }
	if slices.ContainsFunc(t.Log, odd) {
		t.Log = slices.Clone(t.Log)
		for i := range t.Log {
			t.Log[i].StartedAt, t.Log[i].EndedAt = utc(t.Log[i].StartedAt), utc(t.Log[i].EndedAt)
		}
	}
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Round(0)
}
