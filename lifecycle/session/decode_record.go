package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session/strictjson"
)

// DecodeRecord reads a line of a journal. The error wraps ErrCorrupt or
// ErrFutureVersion.
func DecodeRecord(line []byte) (Record, error) {
	var r Record
	err := decodeRecord(line, &r, nil)
	return r, err
}

// maxOps bounds the operations of a record. A writer that has more keeps the State whole:
// the shortest has 30 bytes, and all together 4 MiB.
const maxOps = 1 << 18

// An operation is an Op with what it takes to do it again.
type operation struct {
	Op
	parent   string
	task     Task
	set      []Field
	unset    []string
	at       int
	removed  int
	inserted []string
	keep     int // -1 for all
	added    []Iteration
}

// decodeRecord reads a line and calls do, unless it is nil, with each operation.
func decodeRecord(line []byte, r *Record, do func(*operation) error) error {
	d := newDecoder(strictjson.NewReader(line))
	snapshot := false
	d.Object(func(key string) {
		switch key {
		case "schemaVersion":
			if d.version = d.Int(); d.version != SchemaVersion {
				d.Fail("schemaVersion %d is not %d", d.version, SchemaVersion) // before anything of it is done
			}
		case "seq":
			r.Seq = d.Uint()
		case "epoch":
			r.Epoch = d.Uint()
		case "at":
			r.At = d.time()
		case "event":
			if r.Event = Event(d.Text()); !slices.Contains(events, r.Event) {
				d.Fail("%q is no event", r.Event)
			}
		case "triggers":
			d.triggers(r)
		case "commitUs":
			r.Commit = time.Duration(d.Int()) * time.Microsecond
		case "messages":
			r.Messages = d.tail()
		case "transcript":
			r.Transcript = d.tail()
		case "openCalls":
			r.OpenCalls = d.openCalls()
		case "attempts":
			r.Attempts = d.attempts()
		case "incarnation":
			r.Incarnation = d.Text()
		case "checkpoint":
			r.Checkpoint = d.Text()
		case "rewind":
			r.Rewind = d.rewinding()
		case "snapshot":
			r.Snapshot, snapshot = d.snapshot(), true
		case "ops":
			d.Array(func() {
				op := d.operation()
				if d.Reader.Err() != nil {
					return
				}
				if op.Name == "" || len(r.Ops) == maxOps {
					d.Fail("an operation without a name, or more than %d", maxOps)
					return
				}
				r.Ops = append(r.Ops, op.Op)
				if do == nil {
					return
				}
				if err := do(&op); err != nil {
					d.Fail("%v", err)
				}
			})
		default:
			d.Raw()
		}
	})
	d.End()
	if d.version > 0 && d.version < SchemaVersion {
		now, err := migrateRecord(line, d.version)
		if err != nil {
			return fmt.Errorf("record %d: %w: %w", r.Seq, ErrCorrupt, err)
		}
		*r = Record{}
		return decodeRecord(now, r, do)
	}
	if err := d.Err(); err != nil {
		return fmt.Errorf("record %d: %w", r.Seq, err)
	}
	if snapshot && len(r.Snapshot.SHA256) != 64 || r.Seq == 0 {
		return fmt.Errorf("record %d: %w: a number or a checksum is missing", r.Seq, ErrCorrupt)
	}
	return nil
}

func (d *decoder) triggers(r *Record) {
	d.Object(func(key string) {
		i := slices.Index(triggerNames[:], key)
		if n := d.Uint(); i >= 0 { // one that a later version has is counted there only
			r.Triggers[i] = n
		}
	})
}

func (d *decoder) snapshot() *SnapshotRef {
	ref := &SnapshotRef{Counts: map[string]uint64{}}
	d.Object(func(key string) {
		switch key {
		case "sha256":
			ref.SHA256 = d.Text()
		case "counts":
			d.Object(func(name string) { ref.Counts[name] = d.Uint() })
		default:
			d.Raw()
		}
	})
	return ref
}

func (d *decoder) operation() (op operation) {
	op.keep = -1
	d.Object(func(key string) {
		switch key {
		case "op":
			op.Name = d.Text()
		case "id", "of":
			op.Task = d.Text()
		case "from":
			op.From = d.Text()
		case "to":
			op.To = d.Text()
		case "count":
			op.Count = d.int()
		case "paths":
			op.Paths = d.strs()
		case "parent":
			op.parent = d.Text()
		case "task":
			op.task = d.flatTask()
			op.Task = op.task.ID
		case "set":
			d.Object(func(key string) { op.set = append(op.set, Field{key, d.raw()}) })
		case "unset":
			op.unset = d.strs()
		case "at":
			op.at = d.int()
		case "removed":
			op.removed = d.int()
		case "inserted":
			op.inserted = d.strs()
		case "keep":
			op.keep = d.int()
		case "iterations":
			d.Array(func() { op.added = append(op.added, d.anyIteration()) })
		default:
			d.Raw()
		}
	})
	op.task.Parent = op.parent
	switch op.Name {
	case OpTaskStatusChanged:
		op.To = string(op.task.State)
	case OpIterationsAdded:
		op.Count = len(op.added)
	case OpChildrenChanged:
		op.Count = len(op.inserted) - op.removed
	case OpStatusChanged, OpPhaseChanged, OpStepChanged, OpComponentChanged, OpActiveTaskChanged, OpExitReasonChanged:
		for _, f := range op.set {
			op.To = strictjson.NewReader(f.Value).Text()
		}
	}
	return op
}

// flatTask reads a task without its relatives, which a record names beside it.
func (d *decoder) flatTask() (t Task) {
	d.Object(func(key string) {
		if !d.taskMember(&t, key) {
			t.Extra = append(t.Extra, Field{key, d.raw()})
		}
	})
	return t
}
