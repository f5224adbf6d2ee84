package output

import (
	"bytes"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

const (
	maxLine  = 1 << 20 // bytes of a line of text that are held back for its end
	maxEvent = 4 << 20 // likewise, of an event
	// maxOpen is how far the end of what is open is waited for, in bytes: as far as the rules look.
	maxOpen = 64 << 10
)

// A stream redacts what passes through it: whole lines, so that a credential is seen in one
// piece. Its fields are guarded by the Writer's mu.
type stream struct {
	w       *Writer
	to      *capped
	most    int    // bytes that are held back
	events  bool   // a line may be an event in JSON
	without []byte // how an event begins that is left out
	held    []byte
	look    int // how much is to be held before it is looked at again
}

func (s *stream) Write(p []byte) (int, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.err != nil || s.w.meta == nil {
		s.held = nil
		return len(p), nil
	}
	s.held = append(s.held, p...)
	if bytes.IndexByte(p, '\n') >= 0 && len(s.held) >= s.look || len(s.held) >= s.most {
		s.put(s.border())
	}
	return len(p), nil
}

// border is how much of what is held can be written: whole lines, up to one with which a
// private key, a table or the like begins that has not ended.
func (s *stream) border() int {
	n := bytes.LastIndexByte(s.held, '\n') + 1
	if n == 0 && len(s.held) >= s.most { // not between a name and its value
		if n = bytes.LastIndexAny(s.held, ",;\r") + 1; n == 0 {
			n = len(s.held)
		}
	}
	s.look = 0
	if open := redact.Open(s.held[:n]); open >= 0 && len(s.held)-open < maxOpen {
		if more := (len(s.held) - open) / 8; more > maxOpen/128 { // else what is long is looked at line by line
			s.look = min(len(s.held)-open+more, maxOpen)
		}
		return open
	}
	return n
}

// put writes the first n bytes of what is held.
func (s *stream) put(n int) {
	if n > 0 {
		s.w.put(s.to, s.hidden(s.held[:n]))
		s.held = append(s.held[:0], s.held[n:]...)
	}
}

// end writes all that is held, and ends its line: what comes next is another stream's.
func (s *stream) end() {
	if n := len(s.held); n > 0 && s.held[n-1] != '\n' {
		s.held = append(s.held, '\n')
	}
	s.put(len(s.held))
	s.held = nil
}

// hidden is text without its credentials: events one by one, so that they stay JSON, and
// the text between them in one piece.
func (s *stream) hidden(text []byte) []byte {
	if !s.events {
		out, _ := s.w.redact.Bytes(text)
		return out
	}
	var out []byte
	begin, end := 0, 0 // of the text that was not looked at yet
	for line := range bytes.Lines(text) {
		end += len(line)
		if line[0] != '{' && line[0] != '[' {
			continue
		}
		var event []byte
		if len(s.without) == 0 || !bytes.HasPrefix(line, s.without) {
			var err error
			if event, _, err = s.w.redact.JSON(line); err != nil {
				continue
			}
		}
		between, _ := s.w.redact.Bytes(text[begin : end-len(line)])
		out, begin = append(append(out, between...), event...), end
	}
	rest, _ := s.w.redact.Bytes(text[begin:])
	return append(out, rest...)
}
