package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A chosen is the part of the data that says which session it is about.
type chosen struct {
	Session string `json:"session,omitempty"` // none where no session has what was asked for
	// Others are the newest sessions beside it, where none was named: the newest one is often the agent's
	// own.
	Others []otherSession `json:"otherSessions,omitempty"`
}

// An otherSession is what a session is chosen by, with the names of `session list --json`.
type otherSession struct {
	ID        string         `json:"id"`
	Module    string         `json:"module"`
	Origin    session.Origin `json:"origin,omitempty"`
	UpdatedAt time.Time      `json:"updatedAt"`
}

// maxNamed bounds the other sessions of an answer.
const maxNamed = 8

// notImported are the sessions that are meant where none is named: imported ones have to be.
func notImported(store *lifecycle.Store) ([]lifecycle.Info, error) {
	infos, err := store.List()
	return slices.DeleteFunc(infos, func(i lifecycle.Info) bool { return i.Origin == session.OriginImport }), err
}

// choose sets the session that an answer is about, and says which one it is where none was named.
func (t *toolAnswer) choose(store *lifecycle.Store, id session.ID, named string) error {
	t.about = chosen{Session: id.String()}
	if named != "" {
		return nil
	}
	infos, err := notImported(store)
	if err != nil {
		return err
	}
	what := "the newest one"
	if i := slices.IndexFunc(infos, func(i lifecycle.Info) bool { return i.ID == id }); i >= 0 && infos[i].Origin == session.OriginHook {
		what += ", which is an agent's own"
	}
	t.about, t.which = besides(infos, id.String(), what)
	fmt.Fprint(t.stdout, t.which)
	return nil
}

// besides returns the newest sessions beside one, "" for none, and the line that says what it is and names
// them.
func besides(infos []lifecycle.Info, id, what string) (c chosen, line string) {
	c.Session = id
	var names []string
	for _, i := range infos {
		if i.Err == nil && i.ID.String() != id && len(names) < maxNamed {
			c.Others = append(c.Others, otherSession{i.ID.String(), i.Module, i.Origin, i.UpdatedAt})
			names = append(names, i.ID.String())
		}
	}
	switch {
	case id == "" && len(names) == 0:
		line = "no session can be read\n"
	case id == "":
		line = "the newest sessions are " + strings.Join(names, ", ") + "\n"
	case len(names) == 0:
		line = fmt.Sprintf("session %s is %s; there is no other session\n", id, what)
	default:
		line = fmt.Sprintf("session %s is %s; other sessions are %s\n", id, what, strings.Join(names, ", "))
	}
	return c, line
}
