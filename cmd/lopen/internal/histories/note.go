package histories

import (
	"time"

	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// member is the member of a State's data that has a note.
const member = "history"

// A note says how far a history was taken.
type note struct {
	Position agents.Position `json:"position"`
	// Messages and Events are how many the session had when it was at the position.
	Messages uint64         `json:"messages"`
	Events   uint64         `json:"events"`
	Unknown  map[string]int `json:"unknown,omitempty"` // records of unknown types, of all passes
	Bad      int            `json:"bad,omitempty"`     // records that could not be read, of all passes
	First    time.Time      `json:"first,omitzero"`    // of all messages
	Last     time.Time      `json:"last,omitzero"`
	Cwd      string         `json:"cwd,omitempty"` // the folder that the agent worked in
}

// read returns the note of a session. It is zero if there is none that can be read: then the
// history is read from its beginning, and what is there is known.
func read(st *session.State) (n note) {
	var data struct {
		History note `json:"history"`
	}
	if strictjson.UnmarshalForeign(st.Header().Data, &data) != nil {
		return note{}
	}
	return data.History
}

// write sets the note in a header. Other members of the data stay.
func (n *note) write(h *session.Header) error {
	data := map[string]strictjson.Value{}
	if len(h.Data) > 0 {
		if err := strictjson.UnmarshalForeign(h.Data, &data); err != nil {
			return err
		}
	}
	value, err := strictjson.Marshal(n)
	if err != nil {
		return err
	}
	data[member] = value
	h.Data, err = strictjson.Marshal(data)
	return err
}
