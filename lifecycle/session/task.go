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
// States share its slices, so they must not be changed once the Task was put into an Edit.
type Task struct {
	ID          string    `json:"id,omitzero"` // without control characters, quotes and backslashes
	Kind        Kind      `json:"kind,omitzero"`
	Name        string    `json:"name,omitzero"`
	State       TaskState `json:"state,omitzero"`
	Parent      string    // "" for one of the State's roots
	Children    []string  // in the plan's order
	DependsOn   []string  `json:"dependsOn,omitzero"` // IDs of tasks, which need not exist
	Box         Box       `json:"box,omitzero"`
	Attempts    int       `json:"attempts,omitzero"`  // number of counted attempts since the task was last reset
	LastError   string    `json:"lastError,omitzero"` // of the last attempt, if it failed
	StartedAt   time.Time `json:"startedAt,omitzero"`
	CompletedAt time.Time `json:"completedAt,omitzero"`
	Log         []Attempt `json:"log,omitzero"` // all attempts
	Extra       []Field   // fields that this version does not know; they are written back unchanged
}

// An Attempt is one start of the command on a task.
type Attempt struct {
	Number    int       `json:"number,omitzero"` // from 1
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Exit      int       `json:"exit"`            // exit code; -1 when a signal ended it
	Signal    string    `json:"signal,omitzero"` // the signal's name, if one ended it
	Error     string    `json:"error,omitzero"`  // why the attempt counts as failed; "" if it does not
	Artifacts []string  `json:"artifacts,omitzero"`
}

// A Field is a member of a JSON object that this version does not know and writes back
// unchanged. Its value must not be written to.
type Field struct {
	Key   string
	Value strictjson.Value
}

// FirstDependencies returns the first 8 of DependsOn, which manifests name.
func (t *Task) FirstDependencies() []string { return t.DependsOn[:min(len(t.DependsOn), 8)] }

// leaf reports whether the task can be run, so that Progress counts it.
func (t *Task) leaf() bool {
	return len(t.Children) == 0 && t.Kind != KindComponent && t.Kind != KindModule
}

// Equal reports whether two tasks have the same encoding.
func (t *Task) Equal(u *Task) bool {
	return t.ID == u.ID && t.Kind == u.Kind && t.Name == u.Name && t.Parent == u.Parent && t.sameProgress(u) &&
		sameIDs(t.Children, u.Children) && sameIDs(t.DependsOn, u.DependsOn) &&
		slices.EqualFunc(t.Log, u.Log, Attempt.equal) &&
		slices.EqualFunc(t.Extra, u.Extra, func(a, b Field) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) })
}

// sameProgress compares the states, attempts and times of two tasks.
func (t *Task) sameProgress(u *Task) bool {
	return t.State == u.State && t.Box == u.Box && t.Attempts == u.Attempts && t.LastError == u.LastError &&
		t.StartedAt.Equal(u.StartedAt) && t.CompletedAt.Equal(u.CompletedAt)
}

func (a Attempt) equal(b Attempt) bool {
	return a.Number == b.Number && a.StartedAt.Equal(b.StartedAt) && a.EndedAt.Equal(b.EndedAt) && a.Exit == b.Exit &&
		a.Signal == b.Signal && a.Error == b.Error && slices.Equal(a.Artifacts, b.Artifacts)
}

// sameIDs compares two lists. It takes no time for the same slice, which is the usual case
// for a parent with a million children.
func sameIDs(a, b []string) bool {
	return same(a, b) || slices.Equal(a, b)
}

// same reports whether two slices are the same slice.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// normal brings a task into the form that JSON preserves: times in UTC without a monotonic
// clock. It clips the slices, so that an append to a slice that Task returned makes a copy.
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
