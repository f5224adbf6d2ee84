package turns

import (
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A note is what the data of a session's State has of the agent.
type note struct {
	Transcript string `json:"transcript"` // where the agent writes what is said in its session
	Prompt     string `json:"prompt"`     // the agent's ID of the last prompt
}

func noted(h *session.Header) (n note) {
	if strictjson.UnmarshalForeign(h.Data, &n) != nil {
		return note{}
	}
	return n
}

// Transcript returns where the agent writes what is said in its session, or "".
func Transcript(h *session.Header) string { return noted(h).Transcript }

// remember puts a note into a header. Other members of the data stay.
func remember(h *session.Header, n note) error {
	if n == noted(h) {
		return nil
	}
	data := map[string]strictjson.Value{}
	if len(h.Data) > 0 {
		if err := strictjson.UnmarshalForeign(h.Data, &data); err != nil {
			return err
		}
	}
	data["transcript"], data["prompt"] = session.Text(n.Transcript), session.Text(n.Prompt)
	text, err := strictjson.Marshal(data)
	h.Data = text
	return err
}
