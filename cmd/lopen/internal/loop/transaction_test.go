package loop

import (
	"context"
	"errors"
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

// A side-car that fails is one warning of a run, which tries it again after each task.
func TestTransactionThatFails(t *testing.T) {
	t.Parallel()
	log := zerolog.Nop()
	ui, b := &warnings{}, &behind{err: errors.New("100% full")}
	r := &runner{cfg: Config{UI: ui, Transaction: b}, log: &log, warned: map[string]bool{}}
	for range 3 {
		r.recordTransaction(t.Context())
	}
	require.Equal(t, 3, b.calls)
	require.Len(t, ui.lines, 1)
	require.Contains(t, ui.lines[0], "100% full")
}
