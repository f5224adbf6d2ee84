package lifecycle

import "strings"

// Redacted is how many credentials were hidden in what this process appended.
func (s *Live) Redacted() int64 { return s.hidden.Load() }

func (s *Live) redactJSON(object []byte) ([]byte, error) {
	out, n, err := s.redact.JSON(object)
	s.hidden.Add(int64(n))
	return out, err
}

// redactTail is redactText for the end of an output, which may begin within a private
// key: what stands before the key's end is hidden as well.
func (s *Live) redactTail(text string) string {
	end := strings.Index(text, "-----END ")
	begin := strings.Index(text, "-----BEGIN ")
	if s.redact == nil || end < 0 || begin >= 0 && begin < end {
		return s.redactText(text)
	}
	line, rest, _ := strings.Cut(text[end:], "\n")
	if !strings.Contains(line, "PRIVATE KEY") {
		return s.redactText(text)
	}
	s.hidden.Add(1)
	return "[redacted:private-key]\n" + s.redactText(rest)
}

func (s *Live) redactText(text string) string {
	out, n := s.redact.String(text)
	s.hidden.Add(int64(n))
	return out
}
