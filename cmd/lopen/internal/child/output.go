package child

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
)

// output passes a command's output on and keeps its end.
type output struct {
	active chan struct{} // gets a token when something was printed
	tail   Tail
}

// A Tail keeps the end of what is written to it, by several goroutines.
type Tail struct {
	mu   sync.Mutex
	ring []byte // Guarded by mu: at most twice tailBytes and a bit.
}

type pipes struct {
	ours, theirs []*os.File
	to           []io.Writer
}

// connect makes the pipes of a command's output.
func connect(c Command) (*pipes, error) {
	p := &pipes{to: []io.Writer{c.Stdout, c.Stderr}}
	for range p.to {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeOurEnds()
			p.closeChildEnds()
			return nil, err
		}
		p.ours, p.theirs = append(p.ours, r), append(p.theirs, w)
	}
	return p, nil
}

func (p *pipes) closeOurEnds()   { closeAll(p.ours) }
func (p *pipes) closeChildEnds() { closeAll(p.theirs) }

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// copy passes both streams on until they end or are closed. A writer that fails
// (a terminal that went away) must not stop the command: the rest is read and
// only its end is kept.
func (o *output) copy(p *pipes) <-chan struct{} {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i, r := range p.ours {
		wg.Go(func() {
			defer endOnPanic()
			buf := make([]byte, 32<<10)
			w := p.to[i]
			for {
				n, err := r.Read(buf)
				if n > 0 {
					o.note(buf[:n])
					if w != nil {
						if _, werr := w.Write(buf[:n]); werr != nil {
							w = nil
						}
					}
				}
				if err != nil {
					return
				}
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	return done
}

func (o *output) note(b []byte) {
	select {
	case o.active <- struct{}{}:
	default:
	}
	_, _ = o.tail.Write(b) // never fails
}

func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = tailBytes + 1 // the byte before says whether a line begins
	n := len(b)
	b = b[max(0, n-most):]
	if len(t.ring)+len(b) > 2*most {
		t.ring = append(t.ring[:0], t.ring[max(0, len(t.ring)-most):]...)
	}
	t.ring = append(t.ring, b...)
	return n, nil
}

// Lines are the last whole lines of it: see LastLines.
func (t *Tail) Lines() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return LastLines(t.ring, tailBytes)
}

// LastLines returns the last whole lines of text, at most size bytes of it. A line that
// is cut is left out: its beginning may be what says that the rest is a secret. Of a
// line that is longer than that a note is left.
func LastLines(text []byte, size int) []byte {
	if len(text) <= size {
		return text
	}
	text = text[len(text)-size-1:]
	if _, rest, ok := bytes.Cut(text, []byte{'\n'}); ok && len(rest) > 0 {
		return rest
	}
	return fmt.Appendf(nil, "[the last line is longer than %d bytes and left out]\n", size)
}
