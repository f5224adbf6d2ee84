package plan_test

import (
	"fmt"

	"github.com/lopen-dev/lopen/plan"
)

var todo = plan.Parse([]byte("## Auth\n\n1. [ ] Keep sessions\n2. [ ] Sign tokens\n   - [x] Read the key\n"))

func show(change plan.Change) {
	p, err := change(todo, todo) // Apply does it to a file
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", p.Source())
}

func ExampleAdd() {
	show(plan.Add("Verify tokens", plan.Place{Under: "auth/sign-tokens"}))
	// Output:
	// ## Auth
	//
	// 1. [ ] Keep sessions
	// 2. [ ] Sign tokens
	//    - [x] Read the key
	//    - [ ] Verify tokens
}

func ExampleRemove() {
	show(plan.Remove("auth/sign-tokens"))
	// Output:
	// ## Auth
	//
	// 1. [ ] Keep sessions
}

func ExampleMove() {
	show(plan.Move("auth/sign-tokens/read-the-key", plan.Place{Before: "auth/keep-sessions"}))
	// Output:
	// ## Auth
	//
	// 1. [x] Read the key
	// 1. [ ] Keep sessions
	// 2. [ ] Sign tokens
}

func ExampleRename() {
	show(plan.Rename("auth/keep-sessions", "Keep sessions in `redis`"))
	// Output:
	// ## Auth
	//
	// 1. [ ] Keep sessions in `redis`
	// 2. [ ] Sign tokens
	//    - [x] Read the key
}

func ExampleMarks() {
	show(plan.Marks(map[string]plan.Mark{"auth/sign-tokens": {State: plan.MarkFailed, Attempts: 3}}))
	// Output:
	// ## Auth
	//
	// 1. [ ] Keep sessions
	// 2. [ ] Sign tokens <!-- lopen: failed, 3 attempts -->
	//    - [x] Read the key
}

func ExampleBoxes() {
	show(plan.Boxes(plan.Closure(todo, "auth", true)))
	// Output:
	// ## Auth
	//
	// 1. [x] Keep sessions
	// 2. [x] Sign tokens
	//    - [x] Read the key
}
