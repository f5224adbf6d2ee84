package terminal

import (
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/lopen-dev/lopen/writer/plain"
)

// A Stream is stdout or stderr of the command, or a file of its own.
type Stream struct {
	w        io.Writer
	terminal bool
	device   *device
	text     view
	json     view
	colored  view
}

// A device is what one or two streams lead to.
type device struct {
	mu     sync.Mutex
	set    style  // Guarded by mu: what the terminal draws with now.
	inLine bool   // Guarded by mu: the last line was begun and not ended.
	out    []byte // Guarded by mu: what is to be written; kept for the next time.
}

// New returns a stream to w.
func New(w io.Writer) *Stream {
	f, ok := w.(*os.File)
	s := &Stream{w: w, device: &device{}, terminal: ok && f != nil && term.IsTerminal(int(f.Fd()))}
	s.text = view{s: s}
	s.json = view{s: s, json: true}
	s.colored = view{s: s, colored: true}
	return s
}

// Streams returns the streams to a command's stdout and stderr. Two terminals are taken
// to be the same one: a colour that is left on in stdout is reset before stderr.
func Streams(stdout, stderr io.Writer) (out, err *Stream) {
	out, err = New(stdout), New(stderr)
	if out.terminal && err.terminal {
		out.device = err.device
	}
	return out, err
}

// Terminal says whether the stream leads to a terminal.
func (s *Stream) Terminal() bool { return s.terminal }

// Unwrap is what the stream writes to: for who needs the file itself.
func (s *Stream) Unwrap() io.Writer { return s.w }

// Write writes p as text.
func (s *Stream) Write(p []byte) (int, error) { return s.text.Write(p) }

// JSON is for JSON: its strings have the same value afterwards.
func (s *Stream) JSON() io.Writer { return &s.json }

// Colored is for text with colours: the command's own, where what it did not make up
// itself went through [Line].
func (s *Stream) Colored() io.Writer { return &s.colored }

// Content is for what was asked for byte for byte: a section, a patch.
func (s *Stream) Content() io.Writer {
	if s.terminal {
		return &s.text
	}
	return s.w
}

// Output is for the output of a command that is started now; that of the one before
// ends.
func (s *Stream) Output() io.Writer {
	if !s.terminal {
		return s.w
	}
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	_ = s.colored.end()
	return &s.colored
}

// Control writes a control sequence of the command's own, beneath the status line's text.
// It ends with the cursor at the beginning of a line.
func (s *Stream) Control(seq string) {
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	s.device.draw(style{})
	s.device.out = append(s.device.out, seq...)
	s.device.inLine = false
	_ = s.flush()
}

// InLine says that what was written last did not end its line.
func (s *Stream) InLine() bool {
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	return s.device.inLine
}

// Close writes what was held back, as text, and resets the colours. The stream can be
// written to afterwards; what it leads to stays open.
func (s *Stream) Close() error {
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	for _, v := range []*view{&s.text, &s.json, &s.colored} {
		if err := v.end(); err != nil {
			return err
		}
	}
	return nil
}

// flush writes what is to be written. The device's lock is held.
func (s *Stream) flush() error {
	if len(s.device.out) == 0 {
		return nil
	}
	_, err := s.w.Write(s.device.out)
	s.device.out = s.device.out[:0]
	return err
}

// draw sets the terminal to a style.
func (d *device) draw(with style) {
	if d.set != with {
		d.out = appendSGR(d.out, d.set, with)
		d.set = with
	}
}

// chunk is how much of one Write is looked at before it is written, in bytes: what is
// written is at most ten times as long.
const chunk = 16 << 10

// A view is one way to write to a stream.
type view struct {
	s             *Stream
	json, colored bool

	held  []byte // Guarded by device.mu: the beginning of a rune or an SGR sequence.
	want  style  // Guarded by device.mu: what the text is drawn with; of colored.
	broke bool   // Guarded by device.mu: a carriage return ended the line; of colored.
}

func (v *view) Write(p []byte) (n int, err error) {
	v.s.device.mu.Lock()
	defer v.s.device.mu.Unlock()
	for n < len(p) {
		part := p[n:min(n+chunk, len(p))]
		v.put(part)
		if err := v.s.flush(); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// put looks at p and holds back what only the next bytes decide.
func (v *view) put(p []byte) {
	if len(v.held) > 0 {
		p = append(v.held, p...)
		v.held = nil
	}
	for len(p) > 0 {
		n := v.next(p)
		if n < 0 {
			v.held = append([]byte(nil), p...)
			return
		}
		p = p[n:]
	}
}

// next writes what p begins with, and returns how many bytes that were; -1 when the next bytes
// decide.
func (v *view) next(p []byte) int {
	n := 0
	for n < len(p) && p[n] >= ' ' && p[n] < 0x7f {
		n++
	}
	if n > 0 {
		v.draw(p[:n])
		return n
	}
	switch {
	case p[0] == '\n':
		v.newline()
	case p[0] == '\t':
		v.draw(p[:1])
	case p[0] == '\r' && v.colored:
		v.carriageReturn()
	case p[0] == 0x1b && v.colored:
		return v.escape(p)
	case !utf8.FullRune(p):
		return -1
	default:
		return v.rune(p)
	}
	return 1
}

func (v *view) draw(p []byte) {
	d := v.s.device
	d.draw(v.want)
	d.out = append(d.out, p...)
	d.inLine, v.broke = true, false
}

func (v *view) rune(p []byte) int {
	r, n := utf8.DecodeRune(p)
	v.draw(nil)
	v.s.device.out = plain.AppendRune(v.s.device.out, r, p[:n], v.json)
	return n
}

// escape takes an SGR sequence, or shows ESC. It returns how many bytes that were, and
// -1 when the next ones decide.
func (v *view) escape(p []byte) int {
	params, n := sgr(p)
	if n > 0 {
		if to, ok := v.want.with(string(params)); ok {
			v.want = to
			return n
		}
	}
	if n < 0 {
		return n
	}
	return v.rune(p)
}

// newline ends the line; no colour goes on beyond it.
func (v *view) newline() {
	d := v.s.device
	if v.broke {
		v.broke = false
		return
	}
	d.draw(style{})
	d.out = append(d.out, '\n')
	d.inLine = false
}

// carriageReturn ends the line, unless nothing is on it. With the line feed that may
// follow it is one.
func (v *view) carriageReturn() {
	if v.s.device.inLine {
		v.newline()
		v.broke = true
	}
}

// end shows what was held back and resets the colour. The device's lock is held.
func (v *view) end() error {
	held := v.held
	v.held = nil
	for len(held) > 0 {
		held = held[v.rune(held):]
	}
	v.want, v.broke = style{}, false
	v.s.device.draw(v.want)
	return v.s.flush()
}
