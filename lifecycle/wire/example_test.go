package wire_test

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
)

func Example() {
	now := time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC)
	id, _ := session.NewID("auth", now, 1)
	st, _ := session.New(id, now)
	e := st.Edit()
	e.Put(session.Task{ID: "login", Kind: session.KindComponent, Name: "Login", State: session.TaskPending, Children: []string{"login/form"}})
	e.Put(session.Task{ID: "login/form", Kind: session.KindTask, Name: "Show the form", State: session.TaskPending, Parent: "login", Box: session.BoxOpen})
	e.SetRoots([]string{"login"})
	next, err := e.State()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", wire.EncodeState(next, session.Mark{Seq: 1}))
	// Output:
	// {"schemaVersion":2,"id":"auth-20260214-1","module":"auth","seq":1,"status":"active","phase":"requirement-gathering","step":"draft-specification","createdAt":"2026-02-14T09:30:00Z","updatedAt":"2026-02-14T09:30:00Z","progress":{"done":0,"total":1,"failed":0,"skipped":0},"tasks":[{"id":"login","kind":"component","name":"Login","state":"pending","children":[{"id":"login/form","kind":"task","name":"Show the form","state":"pending","box":"open"}]}],"checksum":"crc32c:b50ce728"}
}

func ExampleEncodeChange() {
	now := time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC)
	id, _ := session.NewID("auth", now, 1)
	was, _ := session.New(id, now)
	e := was.Edit()
	e.Header().Phase = session.PhasePlanning
	next, _ := e.State()
	why := record.Record{At: now, Event: record.EventResumed}
	for _, c := range []wire.Change{wire.EncodeChange(was, next, why, 0), wire.EncodeChange(next, next, why, 0)} {
		fmt.Printf("%s %v\n", c.Body, c.None)
	}
	// Output:
	// "schemaVersion":2,"at":"2026-02-14T09:30:00Z","event":"resumed","ops":[{"op":"phase-changed","from":"requirement-gathering","set":{"phase":"planning"}}] false
	// "schemaVersion":2,"at":"2026-02-14T09:30:00Z","event":"resumed","ops":[] true
}
