package main

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/plan"
)

// asked is a UI that takes the first choice that it is offered.
type asked struct{ loop.UI }

func (asked) Choose(_ string, choices []loop.Choice) (rune, error) { return choices[0].Key, nil }

func TestUnsavedRunDoesNotOfferToEdit(t *testing.T) {
	t.Parallel()
	choices := []loop.Choice{{Key: 'e'}, {Key: 'q'}}
	key, err := unsavedScreen{asked{}}.Choose("What now?", choices)
	require.NoError(t, err)
	require.Equal(t, 'q', key)
	require.Len(t, choices, 2, "the caller's are left alone")
}

func TestUnsavedPlanIsEditedInMemory(t *testing.T) {
	t.Parallel()
	u := &unsavedPlan{plan: plan.Parse([]byte("- [ ] a\n- [ ] b\n"))}
	require.ErrorIs(t, u.CreatePlan("auth", []byte("- [ ] c\n")), fs.ErrExist)
	p, err := u.EditPlan("auth", nil, plan.Boxes(map[string]bool{"b": true, "x": true}))
	var conflict *plan.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, []string{"x"}, conflict.Missing)
	require.Equal(t, "- [ ] a\n- [x] b\n", string(p.Source()))
	_, err = u.EditPlan("auth", nil, plan.Boxes(map[string]bool{"a": true, "b": false}))
	require.NoError(t, err)
	refused := errors.New("no")
	_, err = u.EditPlan("auth", nil, func(_, _ *plan.Plan) (*plan.Plan, error) { return nil, refused })
	require.ErrorIs(t, err, refused)
	p, err = u.ReloadPlan("auth", p)
	require.NoError(t, err)
	require.Equal(t, "- [x] a\n- [ ] b\n", string(p.Source()))
	again, err := u.Plan("auth")
	require.NoError(t, err)
	require.Same(t, p, again)
}
