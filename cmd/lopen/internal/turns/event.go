package turns

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// The events of an agent.
const (
	SessionStart     = "SessionStart"
	UserPromptSubmit = "UserPromptSubmit"
	Stop             = "Stop"
	StopFailure      = "StopFailure" // of Claude Code: a turn that ends with an error of its provider
	Interrupt        = "Interrupt"   // of Codex: the person stopped a turn
	SessionEnd       = "SessionEnd"
)

// An Event is what a hook of an agent is given on stdin.
type Event struct {
	Name       string `json:"hook_event_name"`
	Session    string `json:"session_id"` // the agent's ID of its session
	Transcript string `json:"transcript_path"`
	Cwd        string `json:"cwd"`
	Prompt     string `json:"prompt"`        // of UserPromptSubmit
	PromptID   string `json:"prompt_id"`     // the agent's ID of the prompt; "" if it gives none
	Error      string `json:"error"`         // of StopFailure
	Details    string `json:"error_details"` // of StopFailure

	Came time.Time `json:"-"` // when the hook was called
}

// maxSession bounds the agent's ID of a session, in bytes.
const maxSession = 128

// Parse reads an Event. It ignores members and events that it does not know. The error says what
// the input lacks.
func Parse(data []byte) (*Event, error) {
	e := &Event{}
	if err := strictjson.UnmarshalForeign(data, e); err != nil {
		return nil, errors.New("what the agent gave to the hook is not an event: it is no JSON object, or a member of it has another type")
	}
	printable := func(s string) bool {
		return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) })
	}
	switch {
	case e.Name == "":
		return nil, errors.New("what the agent gave to the hook does not name its event: hook_event_name is missing")
	case e.Session == "" || len(e.Session) > maxSession || !printable(e.Session):
		return nil, fmt.Errorf("what the agent gave to the hook does not name its session: session_id has 1 to %d printable characters", maxSession)
	}
	return e, nil
}

// Failure returns why a turn failed, as the agent says it.
func (e *Event) Failure() string {
	text := e.Error
	if e.Details != "" {
		text = strings.TrimPrefix(text+": "+e.Details, ": ")
	}
	if text == "" {
		text = "the agent says no reason"
	}
	return text
}
