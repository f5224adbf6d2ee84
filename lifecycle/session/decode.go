package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session/strictjson"
)

// Decode reads a State from the contents of state.json and metrics.json and
// returns it with its sequence number. metrics.json may be ahead: it is written
// first, and state.json says how many iterations it covers.
//
// The error wraps ErrCorrupt, ErrChecksum or ErrFutureVersion.
func Decode(state, metrics []byte) (*State, uint64, error) {
	s, seq, n, err := decodeState(state)
	if err != nil {
		return nil, 0, fmt.Errorf("state.json: %w", err)
	}
	id, its, err := decodeMetrics(metrics)
	if err == nil && id != s.id {
		err = fmt.Errorf("%w: it is that of session %s", ErrCorrupt, id)
	}
	if err == nil && len(its) < n {
		err = fmt.Errorf("%w: %d iterations where state.json counts %d", ErrCorrupt, len(its), n)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("metrics.json: %w", err)
	}
	for _, it := range its[:n] {
		s.its = s.its.append(it)
	}
	return s, seq, nil
}

// decodeState returns the State without its iterations, and how many it has.
func decodeState(data []byte) (*State, uint64, int, error) {
	d := newDecoder(data)
	var (
		s     = &State{}
		tasks []*taskNode
		n     int64
		id    string
	)
	d.file(func(key string) {
		switch key {
		case "id":
			id = d.String()
		case "module", "progress", "inputTokens", "outputTokens", "cachedTokens":
			d.Raw() // summaries of what stands elsewhere
		case "iterations":
			n = d.Int()
		case "tasks":
			d.Array(func() { tasks = append(tasks, d.task()) })
		default:
			if !d.header(&s.h, key) {
				s.h.Extra = append(s.h.Extra, Field{key, json.RawMessage(d.Raw())})
			}
		}
	})
	if err := d.Err(); err != nil {
		return nil, 0, 0, err
	}
	st, err := assemble(id, s.h, tasks)
	if err == nil && (n < 0 || n > 1<<40) {
		err = fmt.Errorf("%d iterations", n)
	}
	if err != nil {
		return nil, 0, 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return st, d.seq, int(n), d.checksum(data)
}

// taskNode is a task with the children that are nested in it.
type taskNode struct {
	Task
	nested []*taskNode
}

// assemble builds a State through the checked constructors.
func assemble(name string, h Header, tasks []*taskNode) (*State, error) {
	id, err := ParseID(name)
	if err != nil {
		return nil, err
	}
	if h.CreatedAt.IsZero() || h.UpdatedAt.IsZero() {
		return nil, errors.New("createdAt or updatedAt is missing")
	}
	base, err := New(id, h.CreatedAt)
	if err != nil {
		return nil, err
	}
	e := base.Edit()
	*e.Header() = h
	roots, err := e.adopt("", tasks, 1)
	if err != nil {
		return nil, err
	}
	e.SetRoots(roots)
	return e.State()
}

func (e *Edit) adopt(parent string, nodes []*taskNode, depth int) ([]string, error) {
	if depth > MaxTaskDepth+1 {
		return nil, fmt.Errorf("tasks are nested more than %d levels deep", MaxTaskDepth)
	}
	ids := make([]string, 0, len(nodes))
	for _, n := range nodes {
		if _, ok := e.tasks.Get(n.ID); ok {
			return nil, fmt.Errorf("task %s stands twice", n.ID)
		}
		n.Parent = parent
		e.Put(n.Task) // holds its place, so that a task beneath it cannot have its ID
		children, err := e.adopt(n.ID, n.nested, depth+1)
		if err != nil {
			return nil, err
		}
		if len(children) > 0 {
			n.Children = children
			e.Put(n.Task)
		}
		ids = append(ids, n.ID)
	}
	return ids, nil
}

func decodeMetrics(data []byte) (ID, []Iteration, error) {
	d := newDecoder(data)
	var its []Iteration
	var name string
	d.file(func(key string) {
		switch key {
		case "id":
			name = d.String()
		case "iterations":
			d.Array(func() { its = append(its, d.iteration()) })
		default:
			d.Raw()
		}
	})
	if err := d.Err(); err != nil {
		return ID{}, nil, err
	}
	id, err := ParseID(name)
	for i := range its {
		if err == nil {
			err = its[i].validate()
		}
		if err == nil && its[i].Number != i+1 {
			err = fmt.Errorf("iteration %d stands at place %d", its[i].Number, i+1)
		}
	}
	if err != nil {
		return ID{}, nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return id, its, d.checksum(data)
}

// decoder reads our files. Its Err wraps the errors of this package.
type decoder struct {
	*strictjson.Reader
	version int64
	seq     uint64
	err     error // of the content, where the JSON is well formed
}

func newDecoder(data []byte) *decoder { return &decoder{Reader: strictjson.NewReader(data)} }

func (d *decoder) Err() error {
	if d.err != nil {
		return d.err
	}
	if err := d.Reader.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// file reads the outermost object. schemaVersion must be first, so that a newer
// version is recognised before anything of it is misread.
func (d *decoder) file(member func(key string)) {
	d.Object(func(key string) bool {
		switch {
		case d.version == 0 && key == "schemaVersion":
			if d.version = d.Int(); d.version > SchemaVersion {
				d.err = fmt.Errorf("schema version %d: %w: update lopen", d.version, ErrFutureVersion)
				return false
			}
			if d.version < 1 && d.Reader.Err() == nil {
				d.err = fmt.Errorf("%w: schema version %d", ErrCorrupt, d.version)
				return false
			}
		case d.version == 0:
			d.err = fmt.Errorf("%w: schemaVersion does not come first", ErrCorrupt)
			return false
		case key == "seq":
			d.seq = d.Uint()
		case key == "checksum":
			_ = d.String()
		default:
			member(key)
		}
		return true
	})
	if d.err != nil {
		return
	}
	d.End()
	if d.Reader.Err() == nil && d.version == 0 {
		d.err = fmt.Errorf("%w: it is an empty object", ErrCorrupt)
	}
}

// checksum compares the last member with the bytes before it.
func (d *decoder) checksum(data []byte) error {
	i := bytes.LastIndex(data, []byte(checksumKey))
	if i < 0 {
		return ErrChecksum
	}
	want := fmt.Appendf(nil, "%s%08x\"}", checksumKey, crc32.Checksum(data[:i], castagnoli))
	if !bytes.Equal(bytes.TrimRight(data[i:], "\n"), want) {
		return ErrChecksum
	}
	return nil
}

func (d *decoder) fields(fn func(key string)) {
	d.Object(func(key string) bool { fn(key); return true })
}

// invalid notes content that is well-formed JSON but cannot be.
func (d *decoder) invalid(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: byte %d: %s", ErrCorrupt, d.Pos(), fmt.Sprintf(format, args...))
	}
}

func (d *decoder) time() time.Time {
	s := d.String()
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil && d.Reader.Err() == nil {
		d.invalid("%q is no time", s)
	}
	return utc(t)
}

func (d *decoder) duration() time.Duration {
	s := d.String()
	v, err := time.ParseDuration(s)
	if err != nil && d.Reader.Err() == nil {
		d.invalid("%q is no duration", s)
	}
	return v
}

func (d *decoder) int() int {
	v := d.Int()
	if int64(int(v)) != v {
		d.invalid("%d is too large", v)
	}
	return int(v)
}

func (d *decoder) strs() (all []string) {
	d.Array(func() { all = append(all, d.String()) })
	return all
}

func (d *decoder) raw() json.RawMessage { return json.RawMessage(d.Raw()) }

func (d *decoder) task() *taskNode {
	t := &taskNode{}
	d.fields(func(key string) {
		switch key {
		case "id":
			t.ID = d.String()
		case "kind":
			t.Kind = Kind(d.String())
		case "name":
			t.Name = d.String()
		case "state":
			t.State = TaskState(d.String())
		case "dependsOn":
			t.DependsOn = d.strs()
		case "box":
			t.Box = d.box()
		case "attempts":
			t.Attempts = d.int()
		case "lastError":
			t.LastError = d.String()
		case "startedAt":
			t.StartedAt = d.time()
		case "completedAt":
			t.CompletedAt = d.time()
		case "log":
			d.Array(func() { t.Log = append(t.Log, d.attempt()) })
		case "children":
			d.Array(func() { t.nested = append(t.nested, d.task()) })
		default:
			t.Extra = append(t.Extra, Field{key, d.raw()})
		}
	})
	return t
}

func (d *decoder) box() Box {
	s := d.String()
	for b, name := range boxNames {
		if s == name && s != "" {
			return Box(b)
		}
	}
	d.invalid("%q is no box", s)
	return BoxNone
}

func (d *decoder) attempt() (a Attempt) {
	d.fields(func(key string) {
		switch key {
		case "number":
			a.Number = d.int()
		case "startedAt":
			a.StartedAt = d.time()
		case "endedAt":
			a.EndedAt = d.time()
		case "exit":
			a.Exit = d.int()
		case "signal":
			a.Signal = d.String()
		case "error":
			a.Error = d.String()
		case "artifacts":
			a.Artifacts = d.strs()
		default:
			d.Raw()
		}
	})
	return a
}

func (d *decoder) iteration() (it Iteration) {
	d.fields(func(key string) {
		switch key {
		case "number":
			it.Number = d.int()
		case "task":
			it.Task = d.String()
		case "attempt":
			it.Attempt = d.int()
		case "startedAt":
			it.StartedAt = d.time()
		case "duration":
			it.Duration = d.duration()
		case "inputTokens":
			it.InputTokens = d.Int()
		case "outputTokens":
			it.OutputTokens = d.Int()
		case "cachedTokens":
			it.CachedTokens = d.Int()
		case "contextWindow":
			it.ContextWindow = d.Int()
		case "premiumRequests":
			it.PremiumRequests = d.Float()
		case "costUSD":
			it.CostUSD = d.Float()
		case "model":
			it.Model = d.String()
		case "turns":
			it.Turns = d.int()
		default:
			d.Raw()
		}
	})
	return it
}

// strictObject checks a caller's own JSON as strictly as it will be read.
func strictObject(raw []byte) error {
	r := strictjson.NewReader(raw)
	r.Raw()
	r.End()
	return r.Err()
}
