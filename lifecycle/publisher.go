package lifecycle

import (
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// small is the size in bytes up to which a readable file is replaced whenever the
// session is idle. A larger one is replaced beside the commits when the journal has
// grown by its size, so that the cost of a save does not follow the plan's.
const small = 1 << 20

// publisher replaces the two readable files of a session. Owned by its actor.
type publisher struct {
	state, metrics shown
	beside         *replacement // goes on beside the commits; nil when none does
}

// shown is what is known of one readable file.
type shown struct {
	seq   uint64 // the record that it is of
	size  int64  // bytes
	grown int64  // bytes of records since it was replaced
}

// A replacement is that of a large file, in a goroutine of its own.
type replacement struct {
	file *shown
	was  shown
	done chan struct{} // closed when size and err are set
	size int64
	err  error
}

// grew notes what was appended to the journal.
func (p *publisher) grew(bytes int64) {
	p.state.grown += bytes
	p.metrics.grown += bytes
}

// wanted says whether a file is to be replaced that should show a record.
func (s *shown) wanted(seq uint64, force bool) bool {
	return s.seq < seq && (force || s.size <= small || s.grown >= s.size)
}

// due says whether there is anything for publish to do.
func (p *publisher) due(at session.Mark, force bool) bool {
	return p.beside != nil || p.state.wanted(at.Seq, force) || p.metrics.wanted(at.Iterations, force)
}

// publish replaces the files that are due. With force set both show the State
// durably when it returns nil.
func (p *publisher) publish(dir writer.FS, st *session.State, at session.Mark, force bool) error {
	if err := p.reap(force); err != nil {
		return err
	}
	if p.metrics.wanted(at.Iterations, force) {
		err := p.replace(dir, metricsFile, &p.metrics, at, force, func() []byte { return session.EncodeMetrics(st, at) })
		if err != nil {
			return err
		}
	}
	if p.state.wanted(at.Seq, force) {
		return p.replace(dir, stateFile, &p.state, at, force, func() []byte { return session.EncodeState(st, at) })
	}
	return nil
}

// reap takes the result of a replacement that has ended, or waits for it.
func (p *publisher) reap(wait bool) error {
	b := p.beside
	if b == nil {
		return nil
	}
	if !wait {
		select {
		case <-b.done:
		default:
			return nil
		}
	}
	<-b.done
	p.beside = nil
	if b.err != nil {
		*b.file = b.was
		return b.err
	}
	b.file.size = b.size
	return nil
}

// replace replaces one file: a large one beside the commits unless forced, and
// then one at a time.
func (p *publisher) replace(dir writer.FS, name string, s *shown, at session.Mark, force bool, encode func() []byte) error {
	if force || s.size <= small {
		data := encode()
		if err := writer.ReplaceFile(dir, name, data, filePerm); err != nil {
			return err
		}
		*s = shown{seq: at.Seq, size: int64(len(data))}
		return nil
	}
	if p.beside != nil {
		return nil
	}
	b := &replacement{file: s, was: *s, done: make(chan struct{})}
	p.beside = b
	*s = shown{seq: at.Seq, size: s.size}
	go func() {
		defer close(b.done)
		data := encode()
		b.size, b.err = int64(len(data)), writer.ReplaceFile(dir, name, data, filePerm)
	}()
	return nil
}
