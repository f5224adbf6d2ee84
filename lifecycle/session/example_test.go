package session_test

import (
	"errors"
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
	e.Put(session.Task{ID: "login/form", Kind: session.KindTask, Name: "Show the form", State: session.TaskPending, Parent: "login", Box: session.BoxOpen,
		Children: []string{"login/form/button"}})
	e.Put(session.Task{ID: "login/form/button", Kind: session.KindSubtask, Name: "Draw the button", State: session.TaskComplete, Parent: "login/form", Box: session.BoxTicked})
	e.SetRoots([]string{"login"})
	if st, err = e.State(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %+v\n", st.ID(), st.Progress())
	// Output:
	// auth-20260214-1 {Done:1 Total:1 Failed:0 Skipped:0}
}

func ExampleEdit_State() {
	id, _ := session.NewID("auth", time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC), 1)
	st, _ := session.New(id, time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC))
	e := st.Edit()
	e.Put(session.Task{ID: "form", Kind: session.KindTask, State: session.TaskPending, Parent: "login"})
	_, err := e.State()
	var invalid *session.InvalidError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Field, "is", invalid.Want)
	}
	// Output: parent of a task is a task that there is
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

func ExampleMessage_Validate() {
	now := time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC)
	for _, m := range []session.Message{
		{ID: "1", Time: now, Role: session.RoleSystem, Content: session.Text("You are a programmer.")},
		{ID: "2", Time: now, Role: session.RoleUser, Content: session.Text("What is in main.go?")},
		{ID: "3", Time: now, Role: session.RoleAssistant, Usage: &session.Usage{InputTokens: 20, OutputTokens: 9},
			ToolCalls: []session.ToolCall{{ID: "call-1", Name: "read", Arguments: []byte(`{"path":"main.go"}`)}}},
		{ID: "4", Time: now, Role: session.RoleTool, Content: session.Text("package main")},
	} {
		if err := m.Validate(); err != nil {
			fmt.Println(err)
		}
	}
	// Output: a message of the role tool names the call that it answers
}
