package histories

import (
	"hash/maphash"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// known counts messages and events that a session has, by the hash of what identifies them: the
// thread and the ID of a message, the bytes of an event. It takes 16 bytes for each.
type known struct {
	seed  maphash.Seed
	there map[uint64]uint32
}

// load counts what a session has behind so many messages and events.
func load(sess *lifecycle.Session, store *lifecycle.Store, messages, events uint64) (*known, error) {
	k := &known{maphash.MakeSeed(), map[uint64]uint32{}}
	n := uint64(0)
	for m, err := range sess.Messages() {
		if err != nil {
			return nil, err
		}
		if n++; n > messages {
			k.there[k.message(m.Thread, m.ID)]++
		}
	}
	n = 0
	for e, err := range store.Transcript(sess.ID()) {
		if err != nil {
			return nil, err
		}
		if n++; n > events {
			k.there[maphash.Bytes(k.seed, e)]++
		}
	}
	return k, nil
}

func (k *known) message(thread, id string) uint64 {
	return maphash.String(k.seed, thread+"\x00"+id)
}

// take reports whether the session has an item, and forgets it once. A nil known has nothing.
func (k *known) take(sess *lifecycle.Session, it *agents.Item) (bool, error) {
	if k == nil {
		return false, nil
	}
	var at uint64
	if m := it.Message; m != nil {
		at = k.message(sess.Redact(m.Thread), sess.Redact(m.ID))
	} else {
		body, err := strictjson.AppendCompact(nil, it.Event)
		if err == nil {
			body, err = sess.RedactJSON(body)
		}
		if err != nil {
			return false, err
		}
		at = maphash.Bytes(k.seed, body)
	}
	if k.there[at] == 0 {
		return false, nil
	}
	if k.there[at]--; k.there[at] == 0 {
		delete(k.there, at)
	}
	return true, nil
}

// size is about what an item takes in the backlog of a session, in bytes.
func size(it *agents.Item) int {
	m := it.Message
	if m == nil {
		return len(it.Event)
	}
	n := len(m.Content)
	for _, c := range m.ToolCalls {
		n += len(c.Arguments)
	}
	return n + beside
}

// beside is what a message takes beside its texts, in bytes.
const beside = 256
