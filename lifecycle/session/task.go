package session

import (
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"
)

// Bounds of a task's strings, in bytes, and of its depth.
const (
	MaxTaskID    = 1 << 10
	MaxTaskName  = 64 << 10
	MaxLastError = 16 << 10
	MaxTaskDepth = 64
)

// A Task is an item of the plan. Its slices are shared between States: they
// must not be changed in place once the Task was put into an Edit.
type Task struct {
	ID          string
	Kind        Kind
	Name        string
	State       TaskState
	Parent      string   // "" for one of the State's roots
	Children    []string // in the plan's order
	DependsOn   []string // IDs; that they exist is not required
	Box         Box
	Attempts    int    // failed or done, since the task last began anew
	LastError   string // of the last attempt, if it failed
	StartedAt   time.Time
	CompletedAt time.Time
	Log         []Attempt // every attempt there was
	Extra       []Field   // fields that this version does not know, kept as they are
}

// An Attempt is one start of the command on a task.
type Attempt struct {
	Number    int // from 1
	StartedAt time.Time
	EndedAt   time.Time
	Exit      int    // exit code; -1 when a signal ended it
	Signal    string // the signal's name, if one ended it
	Error     string // why it counts as failed; "" when it does not
	Artifacts []string
}

// A Field is a member of a JSON object that is kept without being understood.
type Field struct {
	Key   string
	Value json.RawMessage
}

// leaf says whether the task is one that runs: those are what progress counts.
func (t *Task) leaf() bool {
	return len(t.Children) == 0 && t.Kind != KindComponent && t.Kind != KindModule
}

func (t *Task) equal(u *Task) bool {
	return t.ID == u.ID && t.Kind == u.Kind && t.Name == u.Name && t.State == u.State && t.Parent == u.Parent &&
		t.Box == u.Box && t.Attempts == u.Attempts && t.LastError == u.LastError &&
		t.StartedAt.Equal(u.StartedAt) && t.CompletedAt.Equal(u.CompletedAt) &&
		slices.Equal(t.Children, u.Children) && slices.Equal(t.DependsOn, u.DependsOn) &&
		slices.EqualFunc(t.Log, u.Log, func(a, b Attempt) bool {
			return a.Number == b.Number && a.StartedAt.Equal(b.StartedAt) && a.EndedAt.Equal(b.EndedAt) && a.Exit == b.Exit &&
				a.Signal == b.Signal && a.Error == b.Error && slices.Equal(a.Artifacts, b.Artifacts)
		}) &&
		slices.EqualFunc(t.Extra, u.Extra, func(a, b Field) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) })
}

// normal brings a task's times to what JSON keeps: UTC, no monotonic clock.
func (t *Task) normal() {
	t.StartedAt, t.CompletedAt = utc(t.StartedAt), utc(t.CompletedAt)
	for i := range t.Log {
		if a := &t.Log[i]; a.StartedAt != utc(a.StartedAt) || a.EndedAt != utc(a.EndedAt) {
			t.Log = slices.Clone(t.Log)
			for j := range t.Log {
				t.Log[j].StartedAt, t.Log[j].EndedAt = utc(t.Log[j].StartedAt), utc(t.Log[j].EndedAt)
			}
			break
		}
	}
}

// validate checks the task by itself, without its relatives.
func (t *Task) validate() error {
	if err := text("task ID", t.ID, MaxTaskID); err != nil {
		return err
	}
	if t.ID == "" {
		return &InvalidError{Field: "task ID", Want: "a text"}
	}
	for _, s := range slices.Concat(t.DependsOn, []string{t.Parent}) {
		if err := text("task ID", s, MaxTaskID); err != nil {
			return err
		}
	}
	if err := text("name of task "+t.ID, t.Name, MaxTaskName); err != nil {
		return err
	}
	if err := text("last error of task "+t.ID, t.LastError, MaxLastError); err != nil {
		return err
	}
	if err := oneOf("kind of task "+t.ID, t.Kind, kinds); err != nil {
		return err
	}
	if err := oneOf("state of task "+t.ID, t.State, taskStates); err != nil {
		return err
	}
	if t.Attempts < 0 || t.Box > BoxTicked {
		return &InvalidError{Field: "attempts or box of task " + t.ID, Want: "a number from 0 on and a known box"}
	}
	for _, a := range t.Log {
		for _, s := range append([]string{a.Signal, a.Error}, a.Artifacts...) {
			if err := text("log of task "+t.ID, s, MaxLastError); err != nil {
				return err
			}
		}
		if err := times(a.StartedAt, a.EndedAt); err != nil {
			return err
		}
	}
	return times(t.StartedAt, t.CompletedAt)
}

func text(field, s string, limit int) error {
	if len(s) > limit || !utf8.ValidString(s) {
		return &InvalidError{Field: field, Value: s, Want: "UTF-8 of at most " + itoa(limit) + " bytes"}
	}
	return nil
}

func times(all ...time.Time) error {
	for _, t := range all {
		if y := t.Year(); y < 1 || y > 9999 {
			return &InvalidError{Field: "time", Value: t.String(), Want: "a year from 1 to 9999"}
		}
	}
	return nil
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Round(0)
}
