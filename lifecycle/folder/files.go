package folder

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
)

// MaxFile bounds the size of a state or metrics file that is read, in bytes.
const MaxFile = 1 << 30

// Readable are the two files that a publication replaces.
var Readable = [2]string{StateFile, MetricsFile}

// Files are the contents of state.json and metrics.json.
type Files struct {
	data   [2][]byte
	sums   [2]string    // SHA-256, in hex
	errs   [2]error     // why a file cannot be used; nil if it can
	replay *wire.Replay // of both files; nil if they do not decode to a State
	used   bool         // Load has returned replay
}

// ReadFiles reads state.json and metrics.json. Damaged content is no error; files of a newer
// version are ErrFutureVersion, and are returned as well.
func ReadFiles(dir writer.FS) (*Files, error) {
	p := &Files{}
	for i, name := range Readable {
		var err error
		if p.data[i], err = writer.ReadText(dir, name, MaxFile); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %s is missing", envelope.ErrCorrupt, name)
		}
		if err != nil && !damagedOnly(err) {
			return nil, err
		}
		p.errs[i] = err
	}
	if errors.Join(p.errs[:]...) != nil {
		return p, nil
	}
	summed := make(chan struct{})
	go func() { // concurrently, because it takes half as long as the decoding
		p.sums = [2]string{SHA256(p.data[0]), SHA256(p.data[1])}
		close(summed)
	}()
	r := &wire.Replay{}
	err := r.Load(p.data[0], p.data[1])
	<-summed
	if errors.Is(err, envelope.ErrFutureVersion) {
		return p, err
	}
	if err == nil {
		p.replay = r
	}
	return p, nil
}

// Base returns the State of both files as a base. [Files.Check] must have returned nil.
func (p *Files) Base() Base {
	at := p.replay.At()
	if p.replay.Metrics().Seq < at.Seq {
		at = p.replay.Metrics()
	}
	return Base{Name: StateFile, At: at, Load: func() (*wire.Replay, error) {
		if !p.used {
			p.used = true
			return p.replay, nil
		}
		r := &wire.Replay{}
		return r, r.Load(p.data[0], p.data[1])
	}}
}

// Check returns nil if the files are intact and belong to the session and its journal. Only
// then they have a Base.
func (p *Files) Check(id session.ID, log *journal.Log) error {
	if err := errors.Join(p.errs[:]...); err != nil {
		return err
	}
	if p.replay == nil {
		return (&wire.Replay{}).Load(p.data[0], p.data[1])
	}
	if err := session.CheckFolder(p.replay.ID(), id); err != nil {
		return fmt.Errorf("%s: %w", StateFile, err)
	}
	for _, at := range []session.Mark{p.replay.At(), p.replay.Metrics()} {
		if !log.Holds(at.Epoch, at.Seq) {
			return fmt.Errorf("%s: a writer that had lost the session wrote it", StateFile)
		}
	}
	return nil
}

// damagedOnly reports whether an error concerns the content of a file and not reading it.
func damagedOnly(err error) bool {
	e, ok := errors.AsType[*writer.Error](err)
	return !ok || e.Class == writer.ClassCorrupt || e.Class == writer.ClassInvalid
}

// asWritten returns the State in the state.json of a newer version, as far as this version
// understands it. It does not apply the records of the log.
func asWritten(dir writer.FS, id session.ID) (*session.State, session.Mark, error) {
	p, err := ReadFiles(dir)
	if p == nil {
		return nil, session.Mark{}, err
	}
	r := &wire.Replay{}
	if err := r.Load(p.data[0], p.data[1]); r.ID() != id {
		return nil, session.Mark{}, err
	}
	r.Level()
	return r.State(id)
}
