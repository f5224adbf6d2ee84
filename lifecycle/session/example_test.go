package session_test

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

func Example() {
	now := time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC)
	id, err := session.NewID("auth", now, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	st, err := session.New(id, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	e := st.Edit()
	e.Put(session.Task{ID: "login", Kind: session.KindComponent, Name: "Login", State: session.TaskPending, Children: []string{"login/form"}})
	e.Put(session.Task{ID: "login/form", Kind: session.KindTask, Name: "Show the form", State: session.TaskPending, Parent: "login", Box: session.BoxOpen})
	e.SetRoots([]string{"login"})
	if st, err = e.State(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %+v\n", st.ID(), st.Progress())
	fmt.Printf("%s", session.EncodeState(st, session.Mark{Seq: 1}))
	// Output:
	// auth-20260214-1 {Done:0 Total:1 Failed:0 Skipped:0}
	// {"schemaVersion":2,"id":"auth-20260214-1","module":"auth","seq":1,"status":"active","phase":"requirement-gathering","step":"draft-specification","createdAt":"2026-02-14T09:30:00Z","updatedAt":"2026-02-14T09:30:00Z","progress":{"done":0,"total":1,"failed":0,"skipped":0},"tasks":[{"id":"login","kind":"component","name":"Login","state":"pending","children":[{"id":"login/form","kind":"task","name":"Show the form","state":"pending","box":"open"}]}],"checksum":"crc32c:b50ce728"}
}

func ExampleEdit_State() {
	id, _ := session.NewID("auth", time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC), 1)
	st, _ := session.New(id, time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC))
	e := st.Edit()
	e.Put(session.Task{ID: "form", Kind: session.KindTask, State: session.TaskPending, Parent: "login"})
	_, err := e.State()
	fmt.Println(err)
	// Output: invalid parent of a task "login": want a task that there is
}

func ExampleDiff() {
	id, _ := session.NewID("auth", time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC), 1)
	before, _ := session.New(id, time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC))
	e := before.Edit()
	e.Put(session.Task{ID: "form", Kind: session.KindTask, State: session.TaskPending})
	e.SetRoots([]string{"form"})
	after, _ := e.State()
	session.Diff(before, after, func(id string, from, to *session.Task) bool {
		fmt.Println(id, from == nil, to.State)
		return true
	})
	// Output: form true pending
}
