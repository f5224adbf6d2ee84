package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/convert"
)

// A box that neither became a task nor was named stops the command.
func TestUnexplainedBoxes(t *testing.T) {
	t.Parallel()
	made := convert.Result{Boxes: 3, Tasks: 2, Left: []plan.Remark{{Line: 1, Text: "x"}}}
	require.NoError(t, explained(made))
	made.Left = nil
	require.ErrorContains(t, explained(made), "3 boxes became 2 tasks and 0 were named: nothing was written")
}
