package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
	"github.com/lopen-dev/lopen/plan"
)

func rosterOf(known []string, fronts ...string) *roster {
	all := &roster{finished: map[string]bool{"done": true}}
	for _, front := range fronts {
		name, text, _ := strings.Cut(front, " ")
		turn, _ := plan.Parse([]byte("---\nx: y\n" + text + "\n---\n# x\n")).Turn()
		all.members = append(all.members, &member{module: name, turn: turn})
		known = append(known, name)
	}
	all.order(append(known, "done"))
	return all
}

// play begins modules in their turn, each of which ends before the next one begins, and returns
// them. Those that are named fail.
func play(all *roster, failing ...string) (order []string) {
	for m := all.next(); m != nil; m = all.next() {
		order = append(order, m.module)
		m.over = true
		for _, name := range failing {
			if m.module == name {
				m.err = &loop.Exit{Code: loop.ExitLimit}
			}
		}
	}
	return order
}

func TestTheTurnsOfModules(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"c", "b", "a", "d"}, play(rosterOf(nil, "a", "b priority: 2", "c priority: 1", "d")))
	require.Equal(t, []string{"b", "a", "c"}, play(rosterOf(nil, "a after: [b, done]", "b", "c after: a")))

	// A module waits for those that are at work; others begin meanwhile.
	all := rosterOf(nil, "a", "b after: a", "c priority: 9223372036854775807")
	require.Equal(t, "a", all.member("a").module)
	first, second := all.next(), all.next()
	require.Equal(t, []string{"c", "a"}, []string{first.module, second.module})
	require.Nil(t, all.next())
	second.over = true
	require.Equal(t, "b", all.next().module)

	all = rosterOf(nil, "a", "b after: a", "c after: b", "d")
	require.Equal(t, []string{"a", "d"}, play(all, "a"))
	require.Equal(t, "it comes after b, which is not done", all.member("c").why)
	require.Equal(t, loop.ExitUser, exitCode(all.exit()), "a person is needed for what comes after it")

	all = rosterOf([]string{"other"}, "a after: [b]", "b after: [c]", "c after: [b]", "d after: [d]", "e after: other", "f after: none", "g")
	require.Equal(t, []string{"g"}, play(all))
	for module, why := range map[string]string{
		"a": "it comes after b, which is not done",
		"b": "it waits for itself: b after c after b; mend",
		"d": "it waits for itself: d after d; mend",
		"e": "it comes after other, which is not finished and was not named",
		"f": "it comes after none, and there is no such module",
	} {
		require.Contains(t, all.member(module).why, why, module)
	}
	var dense, names []string // where each comes after all before it, there are 2^39 ways to look for a cycle
	for i := range 40 {
		dense = append(dense, fmt.Sprintf("m%d after: [%s]", i, strings.Join(names, ", ")))
		names = append(names, fmt.Sprintf("m%d", i))
	}
	require.Equal(t, names, play(rosterOf(nil, dense...)))
	require.Equal(t, math.MaxInt, all.member("g").turn.Priority)
}

func TestTheLineOfAnError(t *testing.T) {
	t.Parallel()
	require.Equal(t, "done", oneLine("done"))
	require.Equal(t, "they conflict; begin again: git merge a; git merge b", oneLine("they conflict\n  begin again:\n   git merge a\n  git merge  b\n"))
}

func TestTheExitCodeOfAWork(t *testing.T) {
	t.Parallel()
	of := func(codes ...int) int {
		all := &roster{}
		for _, code := range codes {
			m := &member{begun: true, over: true}
			if code != 0 {
				m.err = &loop.Exit{Code: code}
			}
			all.members = append(all.members, m)
		}
		if err := all.exit(); err != nil {
			return exitCode(err)
		}
		return 0
	}
	require.Equal(t, 0, of(0, 0))
	require.Equal(t, 11, of(0, 11))
	require.Equal(t, 75, of(11, 75, 0))
	require.Equal(t, 2, of(75, 2, 11))
	require.Equal(t, 2, of(75, 1), "a run that failed needs a person")
	require.Equal(t, 2, of(13))
	require.Equal(t, 14, of(2, 14, 75))
	require.Equal(t, 130, of(14, 130, 2))
}

// A panic of one run is its error: it is in the report, and the others go on.
func TestAPanicOfOneRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{}
	a.stdout, a.stderr = terminal.Streams(&out, &out)
	m := &member{module: "auth", begun: true, turn: plan.Turn{After: []string{"db"}}}
	s := newScreen(t.Context(), a)
	defer s.stop()
	m.run(context.Background(), &workCall{app: a}, &crew{screen: s}) // which has no store
	m.over = true
	require.ErrorContains(t, m.err, "panic: ")
	require.Contains(t, out.String(), "auth | warning: panic: ")
	require.Contains(t, out.String(), "work_base.go")
	require.Equal(t, loop.ExitUser, exitCode((&roster{members: []*member{m}}).exit()))
}
