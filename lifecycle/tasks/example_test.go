package tasks_test

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// A person ticks one task in the editor and adds another, between two starts of
// the command.
func ExampleReconcile() {
	id, _ := session.ParseID("auth-20260214-1")
	st, _ := session.New(id, time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC))

	first, err := tasks.Reconcile(st, plan.Parse([]byte("## Tokens\n\n- [ ] Sign\n- [ ] Verify\n")), tasks.Between)
	if err != nil {
		fmt.Println(err)
		return
	}
	edited := plan.Parse([]byte("## Tokens\n\n- [x] Sign\n- [ ] Verify <!-- after: tokens/rotate -->\n- [ ] Rotate\n"))
	res, err := tasks.Reconcile(first.State, edited, tasks.Between)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range res.Notes {
		fmt.Println(n)
	}
	ready, waiting := tasks.Order(res.State)
	fmt.Println("next:", ready)
	fmt.Println("waiting:", waiting[0].Task, "for", waiting[0].For)
	// Output:
	// ticked by hand, counts as done: tokens/sign
	// new in the plan: tokens/rotate
	// next: [tokens/rotate]
	// waiting: tokens/verify for [tokens/rotate]
}
