package lifecycle

// Redacted is how many credentials were hidden in what this process appended.
func (s *Live) Redacted() int64 { return s.hidden.Load() }

func (s *Live) redactJSON(object []byte) ([]byte, error) {
	out, n, err := s.redact.JSON(object)
	s.hidden.Add(int64(n))
	return out, err
}

func (s *Live) redactText(text string) string {
	out, n := s.redact.String(text)
	s.hidden.Add(int64(n))
	return out
}
