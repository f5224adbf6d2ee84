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

// MaxFile bounds what is read into memory of one state or metrics file, in bytes.
const MaxFile = 1 << 30

// Readable are the two files that a publication makes.
var Readable = [2]string{StateFile, MetricsFile}

// Files are what state.json and metrics.json hold.
type Files struct {
	data   [2][]byte
	sums   [2]string    // SHA-256, in hex
	errs   [2]error     // why there is none
	replay *wire.Replay // of both; nil where they are no States
	used   bool         // replay is
}

// ReadFiles reads state.json and metrics.json. What is wrong with their content is no
// error, but for a newer version's.
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
	go func() { // takes as long as half of the reading
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

// Base is the State of both files, which must be States: see [Files.Check].
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

// Check says whether the files are whole, those of a session and of its journal: then
// they have a Base.
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

// damagedOnly says whether an error is of what a file holds, and not of reading it.
func damagedOnly(err error) bool {
	e, ok := errors.AsType[*writer.Error](err)
	return !ok || e.Class == writer.ClassCorrupt || e.Class == writer.ClassInvalid
}

// asWritten is what a newer version's state.json says, as far as it is known here,
// without the records that its writer may have added.
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
