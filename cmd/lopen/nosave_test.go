package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
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
