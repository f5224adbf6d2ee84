package turns

import (
	"bytes"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// member is the member of a State's data that has the path of the agent's transcript.
const member = "transcript"

// Transcript returns where the agent writes what is said in its session, or "".
func Transcript(h *session.Header) string {
	var data struct {
		Transcript string `json:"transcript"`
	}
	if strictjson.UnmarshalForeign(h.Data, &data) != nil {
		return ""
	}
	return data.Transcript
}

// remember notes where the agent writes. Other members of the data stay.
func remember(h *session.Header, path string) error {
	if path == "" || path == Transcript(h) {
		return nil
	}
	data := map[string]strictjson.Value{}
	if len(h.Data) > 0 {
		if err := strictjson.UnmarshalForeign(h.Data, &data); err != nil {
			return err
		}
	}
	data[member] = session.Text(path)
	text, err := strictjson.Marshal(data)
	h.Data = text
	return err
}

// stopped is what Claude Code writes when a person stops a turn, as the words of the person.
const stopped = "[Request interrupted by user"

// Stopped reports whether the last that was said is that the person stopped the turn. No hook tells
// that of Claude Code. What was said has to be taken over before.
func (k *Keeper) Stopped() (bool, error) {
	last := false
	for m, err := range k.Sess.Messages() {
		if err != nil {
			return false, err
		}
		if m.Thread == "" {
			last = m.Role == session.RoleUser && bytes.Contains(m.Content, []byte(stopped))
		}
	}
	return last, nil
}
