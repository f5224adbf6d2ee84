package session

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// The functions below decide what a State can hold: exactly what the codec can write and
// read again. They return an [*InvalidError] and format its texts only for an error, because
// each task of a file passes through them.

// maxData bounds Header.Data and Header.ModelConfig, in bytes.
const maxData = 1 << 20

// maxText bounds the other strings, in bytes.
const maxText = 64 << 10

// validate checks the task by itself, without its links to other tasks.
func (t *Task) validate() error {
	if err := t.rules(); err != nil {
		err.Field += " of task " + strconv.Quote(t.ID)
		return err
	}
	return nil
}

func (t *Task) rules() *InvalidError {
	if t.ID == "" {
		return &InvalidError{Field: "ID", Want: "a text"}
	}
	if err := cmp.Or(taskID("ID", t.ID), taskID("parent", t.Parent)); err != nil {
		return err
	}
	for _, id := range t.DependsOn {
		if err := taskID("dependency", id); err != nil {
			return err
		}
	}
	if err := cmp.Or(oneOf("kind", t.Kind, kinds), oneOf("state", t.State, taskStates)); err != nil {
		return err
	}
	if t.Attempts < 0 {
		return &InvalidError{Field: "attempts", Value: strconv.Itoa(t.Attempts), Want: "a number from 0 on"}
	}
	if t.Box > BoxTicked {
		return &InvalidError{Field: "box", Value: strconv.Itoa(int(t.Box)), Want: "none, open or ticked"}
	}
	if err := cmp.Or(text("name", t.Name, maxTaskName), text("last error", t.LastError, maxLastError)); err != nil {
		return err
	}
	for i := range t.Log {
		if err := t.Log[i].rules(); err != nil {
			return err
		}
	}
	return cmp.Or(extra(t.Extra, taskKeys), times(t.StartedAt, t.CompletedAt))
}

func (a *Attempt) rules() *InvalidError {
	if err := cmp.Or(text("signal", a.Signal, maxLastError), text("error", a.Error, maxLastError)); err != nil {
		return err
	}
	for _, s := range a.Artifacts {
		if err := text("artifact", s, maxLastError); err != nil {
			return err
		}
	}
	return times(a.StartedAt, a.EndedAt)
}

// Validate returns an [*InvalidError] if a header cannot be written. It compacts Data and
// ModelConfig.
func (h *Header) Validate() error { return h.validate(&Header{}) }

// validate checks a header. It skips Data, ModelConfig and Extra if they are shared with base
// and so were checked before: Data may have a megabyte, and most saves do not change it.
func (h *Header) validate(base *Header) error {
	if err := cmp.Or(
		oneOf("status", h.Status, statuses), oneOf("phase", h.Phase, phases), oneOf("step", h.Step, steps),
		oneOf("exit reason", h.ExitReason, exitReasons), oneOf("origin", h.Origin, origins), h.Holder.rules(),
		taskID("component", h.Component), taskID("active task", h.ActiveTask), plainText("transaction", h.TransactionID, maxTransaction),
		texts("header", h.Cwd, h.AgentName, h.AgentSession),
		texts("git", h.Git.Head, h.Git.Branch, h.Git.LastTaskCommit),
		texts("settings", h.Settings.Agent, h.Settings.Check, h.Settings.Unit), texts("command", h.Settings.Command...),
		texts("models", h.Models...), finite("total cost", h.TotalCostUSD),
		times(h.CreatedAt, h.UpdatedAt, h.CompletedAt),
	); err != nil {
		return err
	}
	if h.CreatedAt.IsZero() || h.UpdatedAt.IsZero() {
		return &InvalidError{Field: "createdAt or updatedAt", Want: "a time"}
	}
	for _, r := range h.Resources {
		if err := texts("resource", r.Kind, r.Path, r.Header, r.SHA256); err != nil {
			return err
		}
	}
	if err := h.pointers(); err != nil {
		return err
	}
	if len(h.Extra) != len(base.Extra) || len(h.Extra) > 0 && &h.Extra[0] != &base.Extra[0] {
		if err := extra(h.Extra, stateKeys); err != nil {
			return err
		}
	}
	if err := oneObject("data", &h.Data, base.Data); err != nil {
		return err
	}
	return oneObject("model config", &h.ModelConfig, base.ModelConfig)
}

func (p *Holder) rules() *InvalidError {
	if p == nil {
		return nil
	}
	if p.PID <= 0 {
		return &InvalidError{Field: "holder", Value: strconv.Itoa(p.PID), Want: "the number of a process"}
	}
	return cmp.Or(plainText("holder's start", p.Start, maxHolder), plainText("holder's host", p.Host, 2*maxHolder),
		plainText("holder's boot", p.Boot, maxHolder), plainText("holder's command", p.Command, maxHolder), times(p.Since))
}

func (h *Header) pointers() error {
	if c := h.Check; c != nil {
		if err := cmp.Or(texts("check", c.Command, c.Task), times(c.At)); err != nil {
			return err
		}
	}
	if c := h.Commits; c != nil {
		if c.Branch == "" {
			return &InvalidError{Field: "branch", Want: "the branch that commits are made on"}
		}
		if err := cmp.Or(taskID("commit", c.Pending), texts("held", c.Held...), texts("branch", c.Branch)); err != nil {
			return err
		}
	}
	if r := h.RateLimit; r != nil {
		if err := times(r.ResetsAt, r.SeenAt); err != nil {
			return err
		}
	}
	if w := h.Worktree; w != nil {
		if err := w.rules(); err != nil {
			return err
		}
	}
	if l := h.Lineage; l != nil {
		if err := oneOf("lineage", l.Kind, lineages); err != nil {
			return err
		}
		if _, err := ParseID(l.From.String()); err != nil {
			return err
		}
	}
	return nil
}

// Validate returns an [*InvalidError] if an iteration cannot be written.
func (it *Iteration) Validate() error {
	if err := cmp.Or(
		taskID("task of an iteration", it.Task), text("model of an iteration", it.Model, maxText), times(it.StartedAt),
		finite("premium requests of an iteration", it.PremiumRequests), finite("cost of an iteration", it.CostUSD),
	); err != nil {
		return err
	}
	if r := it.RateLimit; r != nil {
		if err := times(r.ResetsAt, r.SeenAt); err != nil {
			return err
		}
	}
	if low := min(it.InputTokens, it.OutputTokens, it.CachedTokens, it.ContextUsed, int64(it.Duration)); low < 0 {
		return &InvalidError{Field: "tokens or duration of an iteration", Value: strconv.FormatInt(low, 10), Want: "a number from 0 on"}
	}
	if low := min(it.PremiumRequests, it.CostUSD); low < 0 {
		return &InvalidError{Field: "cost of an iteration", Value: strconv.FormatFloat(low, 'g', -1, 64), Want: "a number from 0 on"}
	}
	return nil
}

// oneOf checks that an enumerated value is one of all.
func oneOf[T ~string](field string, v T, all []T) *InvalidError {
	if slices.Contains(all, v) {
		return nil
	}
	return &InvalidError{Field: field, Value: string(v), Want: oneOfText(all)}
}

// taskID checks the ID of a task.
func taskID(field, s string) *InvalidError { return plainText(field, s, maxTaskID) }

// maxTransaction bounds the ID of a transaction, in bytes: a session's ID, and a number.
const maxTransaction = 128

// maxHolder bounds the texts of a Holder, in bytes, and half of the name of its host.
const maxHolder = 128

// plainText refuses characters that JSON has to escape, so that the summary of a State has a
// bounded length and an ID looks the same everywhere.
func plainText(field, s string, limit int) *InvalidError {
	if len(s) > limit || !strictjson.Plain(s) || !utf8.ValidString(s) {
		return &InvalidError{Field: field, Value: s, Want: "UTF-8 of at most " + strconv.Itoa(limit) + " bytes without control characters, quotes and backslashes"}
	}
	return nil
}

func text(field, s string, limit int) *InvalidError {
	if len(s) > limit || !utf8.ValidString(s) {
		return &InvalidError{Field: field, Value: s, Want: "UTF-8 of at most " + strconv.Itoa(limit) + " bytes"}
	}
	return nil
}

func texts(field string, all ...string) *InvalidError {
	for _, s := range all {
		if err := text(field, s, maxText); err != nil {
			return err
		}
	}
	return nil
}

func finite(field string, v float64) *InvalidError {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return &InvalidError{Field: field, Value: strconv.FormatFloat(v, 'g', -1, 64), Want: "a finite number"}
	}
	return nil
}

// The first and the last second that RFC 3339 has in UTC.
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

func times(all ...time.Time) *InvalidError {
	for _, t := range all {
		if u := t.Unix(); u < firstSecond || u > lastSecond {
			return &InvalidError{Field: "time", Value: t.String(), Want: "a year from 1 to 9999"}
		}
	}
	return nil
}

// oneObject checks that raw is empty or one JSON object of bounded size, and replaces it by a
// compact copy. It skips a value that is shared with base.
func oneObject(field string, raw *strictjson.Value, base strictjson.Value) error {
	if len(*raw) == 0 {
		*raw = nil
		return nil
	}
	if len(*raw) == len(base) && &(*raw)[0] == &base[0] {
		return nil
	}
	compact := strictValue(*raw)
	if compact == nil || compact[0] != '{' || len(compact) > maxData {
		return &InvalidError{Field: field, Value: string(*raw), Want: "one JSON object of at most " + strconv.Itoa(maxData) +
			" bytes and " + strconv.Itoa(strictjson.MaxRaw) + " levels, no key twice"}
	}
	*raw = compact
	return nil
}

// maxExtra bounds the number of unknown fields in one object.
const maxExtra = 256

// extra checks fields that this version does not know.
func extra(fields []Field, known []string) *InvalidError {
	if len(fields) > maxExtra {
		return &InvalidError{Field: "unknown fields", Value: strconv.Itoa(len(fields)), Want: "at most " + strconv.Itoa(maxExtra)}
	}
	for i, f := range fields {
		twice := slices.ContainsFunc(fields[:i], func(g Field) bool { return g.Key == f.Key })
		if twice || slices.Contains(known, f.Key) || !utf8.ValidString(f.Key) {
			return &InvalidError{Field: "unknown field", Value: f.Key, Want: "a name that is not taken"}
		}
		if v := strictValue(f.Value); v == nil || !bytes.Equal(v, f.Value) {
			return &InvalidError{Field: "unknown field " + f.Key, Value: string(f.Value), Want: "one compact JSON value"}
		}
	}
	return nil
}

// strictValue returns a compact copy of a JSON value that every file can hold and read
// back. It returns nil for anything else.
func strictValue(raw []byte) strictjson.Value {
	r := strictjson.NewReader(raw)
	r.Raw()
	r.End()
	if r.Err() != nil {
		return nil
	}
	compact, _ := strictjson.AppendCompact(make([]byte, 0, len(raw)), raw) // which was read already
	return compact
}

var (
	// ErrEdited is wrapped by the error for a file that is well formed and breaks no
	// critical rule, but has a wrong checksum: it was edited outside.
	ErrEdited = errors.New("the checksum does not fit: edited outside")
)

// An InvalidError is a value that a State cannot hold.
type InvalidError struct {
	Field string
	Value string
	Want  string // what would be right
}

func (e *InvalidError) Error() string {
	v := e.Value
	if len(v) > 100 {
		v = v[:100] + "..."
	}
	return fmt.Sprintf("invalid %s %q: want %s", e.Field, v, e.Want)
}

// The names of the known members of a task and of state.json. An unknown field must have
// none of these names, or the member would be there twice.
var (
	taskKeys  = append(keysOf[Task](), "children")
	stateKeys = slices.Concat([]string{"schemaVersion", "id", "module", "epoch", "seq", "progress", "tasks", "checksum"},
		keysOf[Mark](), keysOf[Header](), sumKeys())
)

// sumKeys returns the names of the sums in state.json, which has none of costs and
// durations.
func sumKeys() []string {
	all := keysOf[Totals]()
	return all[:slices.Index(all, "premiumRequests")]
}

// keysOf returns the names in the json tags of a struct.
func keysOf[T any]() (keys []string) {
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
