package loop

import (
	"errors"
	"slices"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

// noting is a store that has decisions only.
type noting struct {
	Plans
	all  []tasks.Decision
	fail error // of ForgetDecisions
}

func (n *noting) Decisions(string) ([]tasks.Decision, error) { return slices.Clone(n.all), nil }

func (n *noting) ForgetDecisions(_ string, taken []tasks.Decision, _ []string) error { return n.fail }

// What was taken is not taken again, and everything else is, whatever its number: that is the
// time by a clock that may have been set back.
func TestADecisionIsTakenOnce(t *testing.T) {
	t.Parallel()
	n := &noting{all: []tasks.Decision{{Seq: 5}, {Seq: 7}}}
	log := zerolog.Nop()
	r := &runner{cfg: Config{Store: n}, log: &log}
	r.forget(r.noted())
	n.all = []tasks.Decision{{Seq: 3}}
	require.Equal(t, n.all, r.noted(), "the others are forgotten")

	n.fail = errors.New("the disk is full")
	r.forget(r.noted())
	n.all = []tasks.Decision{{Seq: 3}, {Seq: 4}}
	require.Equal(t, []tasks.Decision{{Seq: 4}}, r.noted())
	r.forget(r.noted())
	require.Empty(t, r.noted())
}
