package wire

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// decodeBoth decodes both files. With ErrEdited, and with ErrFutureVersion if the files could
// be decoded, it returns them together with the error; with any other error it returns none.
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
		if m.id != s.state.ID() {
			m, err = nil, session.CheckFolder(m.id, s.state.ID())
		}
	}
	if err != nil {
		err = fmt.Errorf("metrics.json: %w", err)
		switch {
		case m == nil && errors.Is(other, envelope.ErrFutureVersion):
			return nil, nil, other // the format of a newer metrics.json is not known
		case m == nil:
			return nil, nil, err
		}
	}
	if other == nil || errors.Is(err, envelope.ErrFutureVersion) {
		other = cmp.Or(err, other)
	}
	return s, m, other
}

// stateFile is the content of state.json.
type stateFile struct {
	state      *session.State // without its iterations
	at         session.Mark
	iterations int
	stated     stated
}

// metricsFile is the content of metrics.json.
type metricsFile struct {
	id         session.ID
	at         session.Mark
	iterations session.Metrics
	stated     stated
}

// stateKeys are the known members of state.json, in the order in which they are written.
var stateKeys = slices.Concat([]string{"schemaVersion", "id", "module", "epoch", "seq"}, markObject.part("", "iterationsSeq").keys,
	summaryHeader.keys, []string{"progress"}, sumsObject.keys, markObject.part("iterationsSeq", "inherits").keys,
	headerObject.part("settings", "").keys, markObject.part("inherits", "").keys, []string{"tasks", "checksum"})

func decodeState(data []byte) (*stateFile, error) {
	d := newDecoder(strictjson.NewSharing(data))
	var id session.ID
	var roots []string
	h := &session.Header{}
	sums := stated{totals: &session.Totals{}}
	d.members(func(key string) {
		switch key {
		case "id":
			id = d.id()
		case "module":
			d.Raw()
		case "progress":
			sums.progress = &session.Progress{}
			d.object(progressObject, sums.progress)
			// An estimate of the number of tasks: the leaves and a sixteenth more for their parents,
			// bounded by the size of the file, since no task has fewer than 64 bytes.
			d.tasks.Grow(min(max(sums.progress.Total, 0)/16*17+16, len(data)/64))
		case "tasks":
			roots = d.children("", 1)
		default:
			if !d.known(headerObject, key, h) && !d.known(sumsObject, key, sums.totals) && !d.known(markObject, key, &d.at) {
				h.Extra = append(h.Extra, session.Field{Key: key, Value: d.raw()})
			}
		}
	})
	d.End()
	newer, err := d.mild()
	if err != nil {
		return nil, err
	}
	if n := sums.totals.Iterations; n < 0 {
		return nil, cmp.Or(newer, fmt.Errorf("%w: %d iterations", envelope.ErrCorrupt, n))
	}
	st, err := d.tasks.State(id, h, roots)
	if err != nil {
		return nil, cmp.Or(newer, fmt.Errorf("%w: %w", envelope.ErrCorrupt, err))
	}
	return &stateFile{state: st, at: d.at, iterations: sums.totals.Iterations, stated: sums}, cmp.Or(newer, checksum(data))
}

func decodeMetrics(data []byte) (*metricsFile, error) {
	d := newDecoder(strictjson.NewSharing(data))
	m := &metricsFile{}
	d.members(func(key string) {
		switch key {
		case "id":
			m.id = d.id()
		case "totals":
			m.stated.totals = &session.Totals{}
			d.object(totalsObject, m.stated.totals)
		case "iterations":
			all, err := session.NewMetrics(d.iterations())
			if err != nil {
				d.Fail("%v", err)
			}
			m.iterations = all
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
		return nil, cmp.Or(newer, fmt.Errorf("%w: id is missing", envelope.ErrCorrupt))
	}
	m.at = d.at
	return m, cmp.Or(newer, checksum(data))
}

// decoder reads our files. It reports invalid values through Fail, which ends the reading
// with an error that has the place.
type decoder struct {
	*strictjson.Reader
	version int64
	at      session.Mark
	tasks   session.Builder
	ids     []string // a stack: children of the tasks that are being read, innermost last
}

func newDecoder(r *strictjson.Reader) *decoder { return &decoder{Reader: r} }

// Err returns an error that wraps ErrCorrupt or ErrFutureVersion, or nil.
func (d *decoder) Err() error {
	err := d.Reader.Err()
	switch {
	case d.version > SchemaVersion:
		return fmt.Errorf("schema version %d: %w: update lopen", d.version, envelope.ErrFutureVersion)
	case err != nil && !errors.Is(err, strictjson.ErrStopped):
		return fmt.Errorf("%w: %w", envelope.ErrCorrupt, err)
	case d.version == 0:
		return fmt.Errorf("%w: schemaVersion is missing", envelope.ErrCorrupt)
	}
	return nil
}

// mild is Err, except that for a file of a newer version that could be read it returns
// ErrFutureVersion in newer and a nil err.
func (d *decoder) mild() (newer, err error) {
	err = d.Err()
	if errors.Is(err, envelope.ErrFutureVersion) && d.Reader.Err() == nil {
		return err, nil
	}
	return nil, err
}

// members reads the outermost object. Every version writes its schemaVersion first, so that
// a newer version is recognized before anything of it is misread. A tool that sorted the
// members may have moved it.
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

func (d *decoder) id() session.ID {
	id, err := session.ParseID(d.Text())
	if err != nil {
		d.Fail("%v", err)
	}
	return id
}

// maxInherits bounds the number of logs that a fork continues: the length of a chain of forks.
const maxInherits = 1 << 16

func (d *decoder) time() time.Time {
	s := d.Text()
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		d.Fail("%q is no time", s)
	}
	return t.UTC()
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

// list reads an array of at most most elements.
func list[T any](d *decoder, most int, element func() T) (all []T) {
	d.Array(func() {
		if all = append(all, element()); len(all) > most {
			d.Fail("a list of more than %d elements", most)
		}
	})
	return all
}

// raw reads any value and returns a compact copy.
func (d *decoder) raw() strictjson.Value {
	raw := []byte(d.Raw())
	v, _ := strictjson.AppendCompact(make([]byte, 0, len(raw)), raw) // cannot fail: Raw has checked it
	return v
}

// checksum returns ErrEdited if the last member is not the checksum of the bytes before it.
func checksum(data []byte) error {
	if _, err := envelope.Checksum.Open(data); err != nil {
		return session.ErrEdited
	}
	return nil
}
