package agents

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An Ending says when a turn ended, and how.
type Ending struct {
	At      time.Time
	Stopped bool   // by the person
	Failure string // what the provider said, if that ended it
}

// tailBytes bounds what EndOfTurn reads of a transcript.
const tailBytes = 1 << 20

// EndOfTurn returns how a turn that began at a time ended, as the last MiB of the transcript says: agents
// do not tell their hooks of each end. It returns nil if nothing there says that it has ended.
func EndOfTurn(agent, path string, began time.Time) (*Ending, error) {
	src, err := openSource(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if src.coded { // nobody writes on in it
		return nil, nil
	}
	from := max(src.size-tailBytes, 0)
	all := newLines(io.NewSectionReader(src, from, tailBytes), from, 0, block) // the first one is most likely torn
	var e *Ending
	for {
		l, err := all.next()
		if errors.Is(err, io.EOF) {
			return e, nil
		}
		if err != nil {
			return e, err
		}
		switch {
		case agent != Codex:
			each(l.text, func(l *claudeLine) bool {
				e = endInTranscript(l, began, e)
				return true
			})
		case e == nil:
			each(l.text, func(l *codexLine) bool {
				e = endInRollout(l, began)
				return e == nil
			})
		}
	}
}

// stopped is how Claude Code notes, as words of the person, that the person stopped a turn.
const stopped = "[Request interrupted by user"

// endInTranscript returns how the turn ended as a line of Claude Code says, and e, what the lines before it say.
func endInTranscript(l *claudeLine, began time.Time, e *Ending) *Ending {
	if l.Sidechain || e != nil && e.Stopped {
		return e
	}
	switch at := timeOf(l.Time); {
	case !at.After(began):
	case l.Type == session.RoleUser && strings.HasPrefix(title(l.Message.Content), stopped):
		return &Ending{At: at, Stopped: true}
	case l.Type == session.RoleAssistant && l.APIError:
		return &Ending{At: at, Failure: cmp.Or(title(l.Message.Content), "the agent says no reason")}
	case l.Type == session.RoleAssistant: // it tried again
		return nil
	}
	return e
}

// endInRollout returns how the turn ended if a line of Codex says it.
func endInRollout(l *codexLine, began time.Time) *Ending {
	var it codexItem
	if l.Type != "event_msg" || !timeOf(l.Time).After(began) || strictjson.UnmarshalLenient(l.Payload, &it) != nil {
		return nil
	}
	switch it.Type {
	case "turn_aborted":
		return &Ending{At: timeOf(l.Time), Stopped: true}
	case "task_complete":
		return &Ending{At: timeOf(l.Time), Failure: oneLine(it.Error.Message)}
	}
	return nil
}
