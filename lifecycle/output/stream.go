package output

import "bytes"

const (
	maxLine  = 1 << 20 // bytes of a line of text that are held back for its end
	maxEvent = 4 << 20 // likewise, of an event
	// maxKey is how far the end of a private key is waited for, in bytes: further than the
	// rules look.
	maxKey = 64 << 10
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
}

func (s *stream) Write(p []byte) (int, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.err != nil || s.w.meta == nil {
		s.held = nil
		return len(p), nil
	}
	s.held = append(s.held, p...)
	if bytes.IndexByte(p, '\n') >= 0 || len(s.held) >= s.most {
		s.put(s.border())
	}
	return len(p), nil
}

// border is how much of what is held can be written: whole lines, up to one with which a
// private key begins that has not ended.
func (s *stream) border() int {
	n := bytes.LastIndexByte(s.held, '\n') + 1
	if n == 0 && len(s.held) >= s.most { // not between a name and its value
		if n = bytes.LastIndexAny(s.held, ",;\r") + 1; n == 0 {
			n = len(s.held)
		}
	}
	if key := openKey(s.held[:n]); key >= 0 && len(s.held)-key < maxKey {
		return key
	}
	return n
}

var keyBegins, keyEnds, keyLabel = []byte("-----BEGIN "), []byte("-----END "), []byte("PRIVATE KEY")

// openKey is where the line begins with which the last private key in text begins, -1 where
// that has ended or there is none.
func openKey(text []byte) int {
	at := bytes.LastIndex(text, keyBegins)
	if at < 0 || bytes.Contains(text[at:], keyEnds) || !bytes.Contains(text[at:min(len(text), at+64)], keyLabel) {
		return -1
	}
	return bytes.LastIndexByte(text[:at], '\n') + 1
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
