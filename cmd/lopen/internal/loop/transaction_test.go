package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// behind is a transaction to which nothing can be written.
type behind struct {
	Transaction
	err   error
	calls int
}

func (b *behind) Record(context.Context) error {
	b.calls++
	return b.err
}

// A side-car that fails is one warning of a run, which tries it again after each task. One that
// hangs would hold the run each time, and is not asked again.
func TestTransactionThatFails(t *testing.T) {
	t.Parallel()
	log := zerolog.Nop()
	for want, err := range map[int]error{3: errors.New("100% full"), 1: fmt.Errorf("git: %w", context.DeadlineExceeded)} {
		ui, b := &warnings{}, &behind{err: err}
		r := &runner{cfg: Config{UI: ui, Transaction: b}, log: &log, warned: map[string]bool{}}
		for range 3 {
			r.recordTransaction(t.Context())
		}
		require.Equal(t, want, b.calls)
		require.Len(t, ui.lines, 1)
		require.Contains(t, ui.lines[0], err.Error())
	}
}
