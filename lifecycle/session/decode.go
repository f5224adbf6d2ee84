package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session/strictjson"
	"github.com/lopen-dev/lopen/lifecycle/session/trie"
)

// Decode reads a State from the contents of state.json and metrics.json and
// returns it with its sequence number. metrics.json may be ahead: it is written
// first, and state.json says how many iterations it covers. What is derived from
// other members (module, progress, sums) is not read but derived again.
//
// The error wraps ErrCorrupt, ErrFutureVersion or ErrChecksum. With ErrChecksum
// the State is returned, too, for showing what somebody edited.
func Decode(state, metrics []byte) (*State, uint64, error) {
	s, seq, n, edited := decodeState(state)
	if edited != nil && !errors.Is(edited, ErrChecksum) {
		return nil, 0, fmt.Errorf("state.json: %w", edited)
	}
	id, all, err := decodeMetrics(metrics)
	switch {
	case err != nil && !errors.Is(err, ErrChecksum):
	case id != s.id:
		err = fmt.Errorf("%w: it is that of session %s", ErrCorrupt, id)
	case len(all) < n:
		err = fmt.Errorf("%w: %d iterations where state.json counts %d", ErrCorrupt, len(all), n)
	default:
		s.iterations = newIterations(all[:n])
		if edited != nil {
			return s, seq, fmt.Errorf("state.json: %w", edited)
		}
		if err == nil {
			return s, seq, nil
		}
		return s, seq, fmt.Errorf("metrics.json: %w", err)
	}
	return nil, 0, fmt.Errorf("metrics.json: %w", err)
}

// decodeState returns the State without its iterations, and how many it has.
func decodeState(data []byte) (*State, uint64, int, error) {
	d := newDecoder(strictjson.NewReader(data))
	var (
		s = &State{h: &Header{}}
		n int
	)
	d.members(func(key string) {
		switch key {
		case "id":
			s.id = d.id()
		case "module", "progress", "inputTokens", "outputTokens", "cachedTokens":
			d.Raw()
		case "iterations":
			n = d.int()
		case "tasks":
			s.roots = d.children("", 1)
		default:
			if !d.header(s.h, key) {
				s.h.Extra = append(s.h.Extra, Field{key, d.raw()})
			}
		}
	})
	d.End()
	if err := d.Err(); err != nil {
		return nil, 0, 0, err
	}
	s.h.normal()
	if err := checkDecoded(s, n); err != nil {
		return nil, 0, 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	tasks, twice, ok := d.tasks.Map()
	if !ok {
		return nil, 0, 0, fmt.Errorf("%w: the task %q stands twice", ErrCorrupt, twice)
	}
	s.tasks, s.progress = tasks, d.progress
	return s, d.seq, n, checksum(data)
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

// decodeMetrics returns the iterations of a metrics.json.
func decodeMetrics(data []byte) (ID, []Iteration, error) {
	d := newDecoder(strictjson.NewReader(data))
	var all []Iteration
	var id ID
	d.members(func(key string) {
		switch key {
		case "id":
			id = d.id()
		case "iterations":
			d.Array(func() { all = append(all, d.iteration(len(all)+1)) })
		default:
			d.Raw()
		}
	})
	d.End()
	if err := d.Err(); err != nil {
		return ID{}, nil, err
	}
	if id.IsZero() {
		return ID{}, nil, fmt.Errorf("%w: id is missing", ErrCorrupt)
	}
	return id, all, checksum(data)
}

// decoder reads our files. Content that is JSON but cannot be is reported
// through Fail, so that it ends the reading and comes with its place.
type decoder struct {
	*strictjson.Reader
	version  int64
	seq      uint64
	tasks    trie.Builder[Task]
	progress Progress
}

func newDecoder(r *strictjson.Reader) *decoder { return &decoder{Reader: r} }

// Err wraps the Reader's error in one of this package's.
func (d *decoder) Err() error {
	err := d.Reader.Err()
	switch {
	case d.version > SchemaVersion:
		return fmt.Errorf("schema version %d: %w: update lopen", d.version, ErrFutureVersion)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case d.version == 0:
		return fmt.Errorf("%w: schemaVersion is missing", ErrCorrupt)
	}
	return nil
}

// members reads the outermost object. Every version writes its schemaVersion
// first, so a newer one is recognised before anything of it is misread. Elsewhere it
// is where a tool has sorted the members.
func (d *decoder) members(member func(key string)) {
	d.Object(func(key string) {
		switch key {
		case "schemaVersion":
			if d.version = d.Int(); d.version < 1 || d.version > SchemaVersion {
				d.Fail("want a schemaVersion from 1 to %d", SchemaVersion)
			}
		case "seq":
			d.seq = d.Uint()
		case "checksum":
			_ = d.Text()
		default:
			member(key)
		}
	})
}

// checksum compares the last member with the bytes before it.
func checksum(data []byte) error {
	i := bytes.LastIndex(data, []byte(checksumKey))
	if i < 0 {
		return ErrChecksum
	}
	want := fmt.Appendf(nil, "%s%08x\"}\n", checksumKey, crc32.Checksum(data[:i], castagnoli))
	if !bytes.Equal(data[i:], want) {
		return ErrChecksum
	}
	return nil
}

func (d *decoder) id() ID {
	id, err := ParseID(d.Text())
	if err != nil {
		d.Fail("%v", err)
	}
	return id
}

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

func (d *decoder) strs() (all []string) {
	d.Array(func() { all = append(all, d.Text()) })
	return all
}

// raw reads any value and keeps it, compact.
func (d *decoder) raw() json.RawMessage {
	v, _ := compact([]byte(d.Raw()))
	return v
}
