package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

// recordRow is a record as `session log --json` prints it.
type recordRow struct {
	Seq      uint64            `json:"seq"`
	Epoch    uint64            `json:"epoch"`
	At       time.Time         `json:"at"`
	Event    string            `json:"event,omitempty"`
	Triggers map[string]uint64 `json:"triggers,omitempty"`
	Saves    uint64            `json:"saves"`
	CommitUs int64             `json:"commitUs,omitempty"`
	Ops      []opRow           `json:"ops"`
	Messages uint64            `json:"messages,omitempty"` // in all
	Events   uint64            `json:"events,omitempty"`   // of the transcript, likewise

	Attempts   []record.Attempt   `json:"attempts,omitempty"`
	Checkpoint string             `json:"checkpoint,omitempty"`
	Rewind     *session.Rewinding `json:"rewind,omitempty"`
}

type opRow struct {
	Op    string   `json:"op"`
	Task  string   `json:"task,omitempty"`
	From  string   `json:"from,omitempty"`
	To    string   `json:"to,omitempty"`
	Count int      `json:"count,omitempty"`
	Paths []string `json:"paths,omitempty"` // the first ones
}

func newRecordRow(r record.Record) recordRow {
	row := recordRow{Attempts: r.Attempts, Checkpoint: r.Checkpoint, Rewind: r.Rewind, Messages: r.Messages, Events: r.Transcript, Seq: r.Seq, Epoch: r.Epoch, At: r.At, Event: string(r.Event), Saves: r.Saves(), CommitUs: r.Commit.Microseconds(), Ops: []opRow{}}
	for t, n := range r.Triggers {
		if n > 0 {
			if row.Triggers == nil {
				row.Triggers = map[string]uint64{}
			}
			row.Triggers[session.Trigger(t).String()] = n
		}
	}
	for _, op := range r.Ops {
		row.Ops = append(row.Ops, opRow{op.Name, op.Task, op.From, op.To, op.Count, op.Paths})
	}
	if r.Snapshot != nil {
		for _, name := range slices.Sorted(maps.Keys(r.Snapshot.Counts)) {
			row.Ops = append(row.Ops, opRow{Op: name, Count: int(r.Snapshot.Counts[name])})
		}
	}
	return row
}

// A recordPrinter prints records with a line for each day.
type recordPrinter struct {
	w   io.Writer
	of  turnsOf
	day string

	first, last      record.Record // of what is counted
	messages, events int
}

// begin prints the day, if it is another one, and the beginning of a line.
func (t *recordPrinter) begin(at time.Time, numbers, what string) error {
	at = at.Local()
	if day := at.Format(time.DateOnly); day != t.day {
		fmt.Fprintf(t.w, "%s\n", day)
		t.day = day
	}
	_, err := fmt.Fprintf(t.w, "%s  %s  %s\n", at.Format("15:04:05"), numbers, what)
	return err
}

// count counts a record that has nothing but messages and events, or comes after one and has
// nothing to tell, and says whether it is one.
func (t *recordPrinter) count(r record.Record) bool {
	if r.Event != "" || r.Snapshot != nil || r.Saves() > 0 || len(r.Ops) == 0 {
		return false
	}
	messages, events := 0, 0
	for _, op := range r.Ops {
		switch op.Name {
		case record.OpMessagesAppended:
			messages += op.Count
		case record.OpEventsAppended:
			events += op.Count
		case record.OpModified:
		default:
			return false
		}
	}
	switch {
	case t.messages+t.events > 0:
	case messages+events == 0:
		return false
	default:
		t.first = r
	}
	t.last, t.messages, t.events = r, t.messages+messages, t.events+events
	return true
}

// flush prints what was counted.
func (t *recordPrinter) flush() error {
	if t.messages+t.events == 0 {
		return nil
	}
	numbers := fmt.Sprintf("#%d", t.first.Seq)
	if t.last.Seq > t.first.Seq {
		numbers += fmt.Sprintf("-%d", t.last.Seq)
	}
	var parts []string
	if t.messages > 0 {
		parts = append(parts, plain.Some(t.messages, "message"))
	}
	if t.events > 0 {
		parts = append(parts, plain.Some(t.events, "event")+" of the transcript")
	}
	t.messages, t.events = 0, 0
	return t.begin(t.first.At, numbers, strings.Join(parts, ", "))
}

// add prints a record, or counts it: messages and events that follow each other are on one line,
// which flush prints after the last record.
func (t *recordPrinter) add(r record.Record) error {
	if t.count(r) {
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	return t.print(r)
}

func (t *recordPrinter) print(r record.Record) error {
	if err := t.begin(r.At, fmt.Sprintf("#%d", r.Seq), causeText(r)); err != nil {
		return err
	}
	if r.Checkpoint != "" && r.Event != "" { // of a fork: the one that the files were last known by
		fmt.Fprintf(t.w, "          checkpoint %s\n", shortID(r.Checkpoint))
	}
	switch w := r.Rewind; {
	case w == nil:
	case w.Back:
		fmt.Fprintf(t.w, "          to %s: it met an error and is taken back\n", shortID(w.To))
	case w.Task != "":
		fmt.Fprintf(t.w, "          set back to %s, which is before %s; what it left is failed:%s\n", shortID(w.To), w.Task, w.Task)
	case w.Before == "": // one that changed nothing, and none was before it
		fmt.Fprintf(t.w, "          to %s\n", shortID(w.To))
	default:
		fmt.Fprintf(t.w, "          to %s; undo goes back to %s\n", shortID(w.To), shortID(w.Before))
	}
	for i := range r.Attempts {
		fmt.Fprintf(t.w, "          %s\n", t.of.attempt(&r.Attempts[i]))
	}
	for _, line := range changesText(r, t.of) {
		fmt.Fprintf(t.w, "          %s\n", line)
	}
	return nil
}

// causeText says why a record was written.
func causeText(r record.Record) string {
	var parts []string
	if r.Event != "" {
		parts = append(parts, string(r.Event))
	}
	for trigger, n := range r.Triggers {
		switch {
		case n == 1:
			parts = append(parts, session.Trigger(trigger).String())
		case n > 1:
			parts = append(parts, fmt.Sprintf("%s ×%d", session.Trigger(trigger), n))
		}
	}
	if len(parts) == 0 { // nobody asked for a save: what came of it has to say why
		for _, op := range r.Ops {
			if what := strings.ReplaceAll(op.Name, "-", " "); !slices.Contains(parts, what) {
				parts = append(parts, what)
			}
		}
	}
	if len(parts) == 0 { // too large for operations
		return "saved"
	}
	return strings.Join(parts, ", ")
}

// many is how many tasks or files are named before they are counted.
const many = 3

// changesText is what a record changed, one line a change. Many tasks that changed in the
// same way are counted.
func changesText(r record.Record, of turnsOf) (lines []string) {
	counts, named := map[string]int{}, map[string]int{}
	for _, op := range r.Ops {
		counts[groupOf(op)]++
	}
	ended := slices.ContainsFunc(r.Ops, func(op record.Op) bool { return op.Name == record.OpTaskStatusChanged })
	for _, op := range r.Ops {
		key := groupOf(op)
		if counts[key] > many {
			if named[key]++; named[key] == 1 {
				lines = append(lines, fmt.Sprintf("%d tasks: %s", counts[key], key))
			}
			continue
		}
		if op.Name == record.OpIterationsAdded && of.st != nil && ended {
			continue // the turn itself is counted, not what the agent used
		}
		if line := opText(op, of); line != "" {
			lines = append(lines, line)
		}
	}
	if r.Snapshot != nil {
		for _, name := range slices.Sorted(maps.Keys(r.Snapshot.Counts)) {
			switch what := strings.ReplaceAll(name, "-", " "); {
			case strings.HasPrefix(name, "task-") || strings.HasPrefix(name, "dependency-"):
				lines = append(lines, fmt.Sprintf("%s: %s", plain.Some(int(r.Snapshot.Counts[name]), "task"), what))
			case name != record.OpModified && name != record.OpChildrenChanged: // as opText
				lines = append(lines, what)
			}
		}
		lines = append(lines, "the whole state is in "+history.ID{Epoch: r.Epoch, Seq: r.Seq}.Stem())
	}
	return lines
}

// groupOf says what an operation has in common with others that are counted with
// it; "" for those that are not.
func groupOf(op record.Op) string {
	switch op.Name {
	case record.OpTaskCreated, record.OpTaskRemoved, record.OpTaskModified, record.OpTaskMoved:
		return strings.TrimPrefix(op.Name, "task-")
	case record.OpTaskStatusChanged:
		return op.From + " → " + op.To
	}
	return op.Name + op.Task + op.To // alone
}

func opText(op record.Op, of turnsOf) string {
	task := of.task(op.Task)
	switch op.Name {
	case record.OpModified, record.OpChildrenChanged, record.OpAttemptRecorded:
		return "" // times and order: --json has them; of an attempt there is a line
	case record.OpMessagesAppended:
		return plain.Some(op.Count, "message")
	case record.OpEventsAppended:
		return plain.Some(op.Count, "event") + " of the transcript"
	case record.OpCheckpointMade:
		if op.Task == "" {
			return "checkpoint " + shortID(op.To)
		}
		return "checkpoint " + shortID(op.To) + " of " + task
	case record.OpNotSetBack:
		return fmt.Sprintf("the files stay as %s left them: %s", task, shown(op.To))
	case record.OpFilesChanged:
		return filesText(op)
	case record.OpFilesKept:
		return fmt.Sprintf("kept, %s: %s", shown(op.To), pathsText(op))
	case record.OpTaskStatusChanged:
		return fmt.Sprintf("%s: %s → %s", task, of.state(op.From), of.state(op.To))
	case record.OpIterationsAdded:
		switch {
		case of.origin != session.OriginRun:
			return "what the agent used was counted"
		case op.Count == 1:
			return "the command ran"
		}
		return fmt.Sprintf("the command ran %d times", op.Count)
	case record.OpActiveTaskChanged:
		return fmt.Sprintf("active task: %s → %s", of.active(op.From), of.active(op.To))
	case record.OpStatusChanged, record.OpPhaseChanged, record.OpStepChanged, record.OpComponentChanged, record.OpExitReasonChanged:
		what := strings.ReplaceAll(strings.TrimSuffix(op.Name, "-changed"), "-", " ")
		return fmt.Sprintf("%s: %s → %s", what, shown(cmp.Or(op.From, "none")), shown(cmp.Or(op.To, "none")))
	}
	return strings.TrimSpace(task + " " + of.happened(op.Name))
}

// pathsText names the first paths of an operation.
func pathsText(op record.Op) string {
	names := make([]string, min(len(op.Paths), many))
	for i := range names {
		names[i] = shown(op.Paths[i])
	}
	list := strings.Join(names, ", ")
	if more := op.Count - len(names); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// filesText names the files of an operation, the first ones.
func filesText(op record.Op) string {
	if len(op.Paths) == 0 {
		return plain.Some(op.Count, "more file") + " changed"
	}
	list := pathsText(op)
	if op.To == "mode" {
		return "permissions of files: " + list
	}
	return fmt.Sprintf("files %s: %s", op.To, list)
}
