package carry

import (
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

const (
	// maxAppended bounds a message or an event, in bytes.
	maxAppended = journal.MaxBody - 256
	// leftOut stands in the place of a content.
	leftOut = "left out of what was carried"
	// maxWord bounds a member of an event that stays, in bytes.
	maxWord = 128
)

// message returns what takes the place of a message. A content stays if it is asked for, and
// if it has room in a record once it is redacted.
func (t *texts) message(object strictjson.Value) (strictjson.Value, error) {
	m, err := wire.DecodeMessage(object)
	if err != nil {
		return t.event(object) // as that of a newer version
	}
	if !t.NoMessages {
		now, err := t.redacted(m)
		if err != nil || len(now) <= maxAppended {
			return now, err
		}
	}
	m.Content = session.Text(leftOut)
	for i := range m.ToolCalls {
		m.ToolCalls[i].Arguments = nil
	}
	return t.redacted(m)
}

// redacted returns a message with the credentials in its texts hidden. Its ID and those of its
// calls stay as they are, unless there is a credential in them.
func (t *texts) redacted(m session.Message) (strictjson.Value, error) {
	m.ID, _ = t.Redact.String(m.ID)
	m.ToolCallID, _ = t.Redact.String(m.ToolCallID)
	m.Thread, _ = t.Redact.String(m.Thread)
	m.Parent, _ = t.Redact.String(m.Parent)
	var err error
	value := func(v *strictjson.Value) {
		if len(*v) > 0 && err == nil {
			*v, _, err = t.Redact.JSON(*v)
		}
	}
	value(&m.Content)
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		c.ID, _ = t.Redact.String(c.ID)
		c.Name, _ = t.Redact.String(c.Name)
		value(&c.Arguments)
	}
	if err == nil {
		err = m.Validate() // an ID may have become too long
	}
	if err != nil {
		return nil, fmt.Errorf("%w: message: %w", envelope.ErrCorrupt, err)
	}
	return wire.EncodeMessage(&m)
}

// event returns what takes the place of an event. Of one whose content does not stay the
// members do by which others refer to it.
func (t *texts) event(object strictjson.Value) (strictjson.Value, error) {
	if !t.NoMessages {
		now, _, err := t.Redact.JSON(object)
		if err != nil || len(now) <= maxAppended {
			return now, err
		}
	}
	var stub struct {
		UUID      string `json:"uuid,omitempty"`
		Timestamp string `json:"timestamp,omitempty"`
		Type      string `json:"type,omitempty"`
		Role      string `json:"role,omitempty"`
		Content   string `json:"content"`
	}
	if err := strictjson.UnmarshalLenient(object, &stub); err != nil {
		return nil, fmt.Errorf("%w: event: %w", envelope.ErrCorrupt, err)
	}
	for _, word := range []*string{&stub.UUID, &stub.Timestamp, &stub.Type, &stub.Role} {
		if len(*word) > maxWord {
			*word = ""
		}
		*word, _ = t.Redact.String(*word)
	}
	stub.Content = leftOut
	return strictjson.Marshal(stub)
}
