package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session/trie"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Decode reads a State from the contents of state.json and metrics.json and
// returns it with its mark. metrics.json may be ahead: state.json says how many
// iterations it covers. What is derived from other members (module, progress, sums)
// is not read but derived again. Records are not looked at: that is a [Replay]'s.
//
// The State shares the memory of
// both: they must not be changed afterwards.
//
// The error wraps ErrCorrupt, ErrFutureVersion or ErrChecksum. With ErrChecksum
// the State is returned, too, for showing what somebody edited; with
// ErrFutureVersion as well, where what this version knows of it can be read.
func Decode(state, metrics []byte) (*State, Mark, error) {
	s, m, other := decodeBoth(state, metrics)
	if s == nil {
		return nil, Mark{}, other
	}
	if err := s.cover(m); err != nil {
		return nil, Mark{}, err
	}
	return s.state, s.at, other
}

// decodeBoth returns both files, or an error without them; with an error that is
// mild, both.
func decodeBoth(state, metrics []byte) (*stateFile, *metricsFile, error) {
	s, other := decodeState(state)
	if other != nil {
		other = fmt.Errorf("state.json: %w", other)
		if s == nil {
			return nil, nil, other
		}
	}
	m, err := decodeMetrics(metrics)
	if m != nil {
		if m.id != s.state.id {
			m, err = nil, CheckFolder(m.id, s.state.id)
		}
	}
	if err != nil {
		err = fmt.Errorf("metrics.json: %w", err)
		switch {
		case m == nil && errors.Is(other, ErrFutureVersion):
			return nil, nil, other // a newer version's metrics.json may be anything
		case m == nil:
			return nil, nil, err
		}
	}
	if other == nil || errors.Is(err, ErrFutureVersion) {
		other = cmp.Or(err, other)
	}
	return s, m, other
}

// stateFile is what state.json holds.
type stateFile struct {
	state      *State // without its iterations
	at         Mark
	iterations int
	said       said
}

// cover gives the State the iterations that it counts.
func (s *stateFile) cover(m *metricsFile) error {
	if len(m.iterations) < s.iterations {
		return fmt.Errorf("metrics.json: %w: %d iterations where state.json counts %d", ErrCorrupt, len(m.iterations), s.iterations)
	}
	s.state.iterations = newIterations(m.iterations[:s.iterations])
	return nil
}

// metricsFile is what metrics.json holds.
type metricsFile struct {
	id         ID
	at         Mark
	iterations []Iteration
	said       said
}

// stateKeys are the members of state.json that the decoder knows, in the order in which they
// are written.
var stateKeys = slices.Concat([]string{"schemaVersion", "id", "module", "epoch", "seq"}, markObject.part("", "iterationsSeq").keys,
	summaryHeader.keys, []string{"progress"}, sumsObject.keys, markObject.part("iterationsSeq", "inherits").keys,
	headerObject.part("settings", "").keys, markObject.part("inherits", "").keys, []string{"tasks", "checksum"})

func decodeState(data []byte) (*stateFile, error) {
	d := newDecoder(strictjson.NewSharing(data))
	s := &State{h: &Header{}}
	sums := said{totals: &Totals{}}
	d.members(func(key string) {
		switch key {
		case "id":
			s.id = d.id()
		case "module":
			d.Raw()
		case "progress":
			sums.progress = &Progress{}
			d.object(progressObject, sums.progress)
			// A hint: the leaves, and some more for those that hold them; no task is shorter.
			d.tasks.Grow(min(max(sums.progress.Total, 0)/16*17+16, len(data)/64))
		case "tasks":
			s.roots = d.children("", 1)
		default:
			if !d.known(headerObject, key, s.h) && !d.known(sumsObject, key, sums.totals) && !d.known(markObject, key, &d.at) {
				s.h.Extra = append(s.h.Extra, Field{key, d.raw()})
			}
		}
	})
	d.End()
	newer, err := d.mild()
	if err != nil {
		return nil, err
	}
	s.h.normal()
	if err := checkDecoded(s, sums.totals.Iterations); err != nil {
		return nil, cmp.Or(newer, fmt.Errorf("%w: %w", ErrCorrupt, err))
	}
	tasks, twice, ok := d.tasks.Map()
	if !ok {
		return nil, cmp.Or[error](newer, &broken{&ruleDuplicate, fmt.Errorf("%w: the task %q stands twice", ErrCorrupt, twice)})
	}
	s.tasks, s.progress = tasks, d.progress
	return &stateFile{state: s, at: d.at, iterations: sums.totals.Iterations, said: sums}, cmp.Or(newer, checksum(data))
}

// checkDecoded checks what no single member shows.
func checkDecoded(s *State, iterations int) error {
	switch {
	case s.id.IsZero():
		return errors.New("id is missing")
	case iterations < 0:
		return fmt.Errorf("%d iterations", iterations)
	}
	return s.h.validate(&Header{})
}

func decodeMetrics(data []byte) (*metricsFile, error) {
	d := newDecoder(strictjson.NewSharing(data))
	m := &metricsFile{}
	d.members(func(key string) {
		switch key {
		case "id":
			m.id = d.id()
		case "totals":
			m.said.totals = &Totals{}
			d.object(totalsObject, m.said.totals)
		case "iterations":
			m.iterations = d.iterations()
			for i, it := range m.iterations {
				if it.Number != i+1 {
					d.Fail("iteration %d stands at place %d", it.Number, i+1)
				}
			}
		default:
			d.Raw()
		}
	})
	d.End()
	newer, err := d.mild()
	if err != nil {
		return nil, err
	}
	if m.id.IsZero() {
		return nil, cmp.Or(newer, fmt.Errorf("%w: id is missing", ErrCorrupt))
	}
	m.at = d.at
	return m, cmp.Or(newer, checksum(data))
}

// decoder reads our files. Content that is JSON but cannot be is reported
// through Fail, so that it ends the reading and comes with its place.
type decoder struct {
	*strictjson.Reader
	version  int64
	at       Mark
	tasks    trie.Builder[Task]
	ids      []string // of the tasks whose parents are being read, innermost last
	progress tally
}

func newDecoder(r *strictjson.Reader) *decoder { return &decoder{Reader: r} }

// Err wraps the Reader's error in one of this package's.
func (d *decoder) Err() error {
	err := d.Reader.Err()
	switch {
	case d.version > SchemaVersion:
		return fmt.Errorf("schema version %d: %w: update lopen", d.version, ErrFutureVersion)
	case err != nil && !errors.Is(err, strictjson.ErrStopped):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case d.version == 0:
		return fmt.Errorf("%w: schemaVersion is missing", ErrCorrupt)
	}
	return nil
}

// mild is Err, but for a newer version's file that could be read all the same: then
// newer says that it is one, and err is nil.
func (d *decoder) mild() (newer, err error) {
	err = d.Err()
	if errors.Is(err, ErrFutureVersion) && d.Reader.Err() == nil {
		return err, nil
	}
	return nil, err
}

// members reads the outermost object. Every version writes its schemaVersion
// first, so a newer one is recognised before anything of it is misread. Elsewhere it
// is where a tool has sorted the members.
func (d *decoder) members(member func(key string)) {
	d.ObjectOf(stateKeys, func(_ int, key string) {
		switch key {
		case "schemaVersion":
			if d.version = d.Int(); d.version < SchemaVersion {
				d.Fail("want a schemaVersion from %d on", SchemaVersion)
			}
		case "epoch":
			d.at.Epoch = d.Uint()
		case "seq":
			d.at.Seq = d.Uint()
		case "checksum":
			_ = d.Text()
		default:
			member(key)
		}
	})
}

func (d *decoder) id() ID {
	id, err := ParseID(d.Text())
	if err != nil {
		d.Fail("%v", err)
	}
	return id
}

// maxInherits bounds how many logs a fork goes on from: it is a fork of a fork that often.
const maxInherits = 1 << 16

func (d *decoder) time() time.Time {
	s := d.Text()
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		d.Fail("%q is no time", s)
	}
	return utc(t)
}

func (d *decoder) duration() time.Duration {
	s := d.Text()
	v, err := time.ParseDuration(s)
	if err != nil {
		d.Fail("%q is no duration", s)
	}
	return v
}

func (d *decoder) int() int {
	v := d.Int()
	if int64(int(v)) != v {
		d.Fail("%d is too large", v)
	}
	return int(v)
}

func (d *decoder) strs(most int) []string { return list(d, most, d.Text) }

func (d *decoder) uints(most int) []uint64 { return list(d, most, d.Uint) }

// list reads an array, of so many elements at most.
func list[T any](d *decoder, most int, element func() T) (all []T) {
	d.Array(func() {
		if all = append(all, element()); len(all) > most {
			d.Fail("a list of more than %d elements", most)
		}
	})
	return all
}

// raw reads any value and keeps it, compact.
func (d *decoder) raw() json.RawMessage {
	v, _ := compact([]byte(d.Raw()))
	return v
}
