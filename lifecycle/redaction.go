package lifecycle

func (s *Live) redactJSON(object []byte) ([]byte, error) {
	out, _, err := s.redact.JSON(object)
	return out, err
}

// Redact is text as the session would keep it: with its credentials hidden.
func (s *Live) Redact(text string) string {
	out, _ := s.redact.String(text)
	return out
}

// RedactArgs is argv as the session would keep it: see [redact.Redactor.Args].
func (s *Live) RedactArgs(argv []string) []string {
	out, _ := s.redact.Args(argv)
	return out
}
