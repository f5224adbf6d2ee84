package turns

import "strings"

// Module is a stand-in.
func Module(agent, id string) string {
	short := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(id))
	if short == "" {
		short = "0"
	}
	return agent + "-" + short[:min(len(short), 8)]
}
