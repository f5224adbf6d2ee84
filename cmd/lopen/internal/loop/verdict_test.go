package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// at is a time in the evening.
var at = time.Date(2026, 2, 14, 23, 0, 0, 0, time.UTC)

func TestVerdict(t *testing.T) {
	t.Parallel()
	limit := &agent.Problem{Kind: agent.Limit, Text: "usage limit", ResetAt: at}
	login := &agent.Problem{Kind: agent.Login, Text: "Not logged in", Mend: "claude /login"}
	good := agent.Report{Spoke: true, Final: true, Success: true}
	exit := func(n int) child.Result { return child.Result{Exit: n, StartedAt: at, EndedAt: at.Add(time.Second)} }
	stopped := func(c child.Cause) child.Result {
		return child.Result{Exit: -1, Signal: "SIGTERM", Cause: c, StartedAt: at, EndedAt: at.Add(time.Minute)}
	}
	after := at.Add(time.Hour)
	for name, c := range map[string]struct {
		start
		then, failure string
		kind          agent.Kind
		byWords       bool
	}{
		"known: success":                      {start: start{knows: true, report: good}, then: record.Done},
		"known: success, and the check fails": {start: start{knows: true, report: good, red: "the check"}, then: record.Failed, failure: "the check"},
		"known: success, and another exit":    {start: start{knows: true, report: good, result: exit(1)}, then: record.Failed, failure: "exit 1"},
		"known: an error with exit 0": {start: start{knows: true, report: agent.Report{Spoke: true, Final: true, Error: "boom"}},
			then: record.Failed, failure: "the agent says: boom"},
		"known: an error without a word": {start: start{knows: true, report: agent.Report{Spoke: true, Final: true}},
			then: record.Failed, failure: "the agent says that it failed"},
		"known: a torn end": {start: start{knows: true, report: agent.Report{Spoke: true}},
			then: record.Failed, failure: "exit 0 without the event that ends a run: its output was cut"},
		"known: an error before the end": {start: start{knows: true, report: agent.Report{Error: "boom"}, result: exit(2)},
			then: record.Failed, failure: "exit 2: boom"},
		"known: a limit with exit 1": {start: start{knows: true, report: agent.Report{Final: true, Error: "x", Problem: limit}, result: exit(1)},
			then: record.Waits, kind: agent.Limit},
		"known: a limit after files were changed": {start: start{knows: true, report: agent.Report{Spoke: true, Problem: limit}, result: exit(1), changed: true},
			then: record.Waits, kind: agent.Limit},
		"known: a limit that it got over": {start: start{knows: true, report: agent.Report{Spoke: true, Final: true, Success: true, Problem: limit}}, then: record.Done},
		"known: stopped at a hopeless retry": {start: start{knows: true, report: agent.Report{Problem: login}, result: stopped(child.CauseStopped)},
			then: record.Needed, kind: agent.Login},
		"known: idle while it retried": {start: start{knows: true, report: agent.Report{Problem: &agent.Problem{Kind: agent.Overload}}, result: stopped(child.CauseIdle)},
			then: record.Waits, kind: agent.Overload},
		"known: idle":              {start: start{knows: true, report: agent.Report{Spoke: true}, result: stopped(child.CauseIdle)}, then: record.Failed, failure: "exit -1"},
		"known: exit 75 of a wrap": {start: start{knows: true, result: exit(75)}, then: record.Waits, kind: agent.Limit},
		"known: the budget is used up": {start: start{knows: true, budget: 2, report: agent.Report{Spoke: true, Final: true, Usage: agent.Usage{CostUSD: 2.01}}, result: exit(1)},
			then: record.Uncounted, failure: "ended when what was left of the budget, $2.00, was used up"},
		"known: dearer than the budget, and done": {start: start{knows: true, budget: 2, report: agent.Report{Spoke: true, Final: true, Success: true, Usage: agent.Usage{CostUSD: 2.01}}},
			then: record.Done},
		"known: its session is gone": {start: start{knows: true, resumed: true, report: agent.Report{Final: true, Error: "No conversation found"}, result: exit(1)},
			then: record.Uncounted, failure: "the agent's session could not be continued: the agent says: No conversation found"},
		"known: continued, and it failed": {start: start{knows: true, resumed: true, report: agent.Report{Spoke: true, Final: true, Error: "boom"}, result: exit(1)},
			then: record.Failed, failure: "the agent says: boom"},
		"unknown: exit 0":              {start: start{result: exit(0)}, then: record.Done},
		"unknown: exit 7":              {start: start{result: exit(7)}, then: record.Failed, failure: "exit 7"},
		"unknown: exit 75":             {start: start{result: exit(75), changed: true}, then: record.Waits, kind: agent.Limit},
		"unknown: ended with 75":       {start: start{result: child.Result{Exit: 75, Cause: child.CauseTimeout}}, then: record.Failed, failure: "exit 75"},
		"unknown: its last line says":  {start: start{result: exit(1), guess: limit, guessed: 2}, then: record.Waits, kind: agent.Limit, byWords: true},
		"unknown: says so once more":   {start: start{result: exit(1), guess: limit, guessed: 3}, then: record.Failed, failure: "exit 1"},
		"unknown: says so, and worked": {start: start{result: exit(1), guess: limit, changed: true}, then: record.Failed, failure: "exit 1"},
		"unknown: says so, and exit 0": {start: start{result: exit(0), guess: limit}, then: record.Done},
		"unknown: says so, when ended": {start: start{result: stopped(child.CauseTimeout), guess: limit}, then: record.Failed, failure: "exit -1"},
		"a time in the metrics":        {start: start{result: exit(75), retryAt: &after}, then: record.Waits, kind: agent.Limit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.ended = describe(child.Result{Exit: c.result.Exit}, Config{})
			v := c.weigh()
			require.Equal(t, c.then, v.then)
			require.Equal(t, c.failure, v.failure)
			require.Equal(t, c.byWords, v.byWords)
			require.Equal(t, c.kind != "", v.problem != nil)
			if v.problem != nil {
				require.Equal(t, c.kind, v.problem.Kind)
				if c.retryAt != nil {
					require.Equal(t, after, v.problem.ResetAt)
				}
			}
		})
	}
}

func TestAnEmptyStart(t *testing.T) {
	t.Parallel()
	took := func(d time.Duration) child.Result { return child.Result{Exit: 1, StartedAt: at, EndedAt: at.Add(d)} }
	for name, c := range map[string]struct {
		start
		want bool
	}{
		"known, and nothing was said":     {start{knows: true, result: took(time.Hour), changed: true}, true},
		"known, and the model spoke":      {start{knows: true, report: agent.Report{Spoke: true}, result: took(time.Second)}, false},
		"unknown, within seconds":         {start{result: took(9 * time.Second)}, true},
		"unknown, within seconds, worked": {start{result: took(9 * time.Second), changed: true}, false},
		"unknown, it took its time":       {start{result: took(10 * time.Second)}, false},
	} {
		require.Equal(t, c.want, c.empty(), name)
	}
}
