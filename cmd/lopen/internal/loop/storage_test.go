package loop

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
)

// TestWaitOfEachClass requires a decision for each class of storage error: whether a run waits
// until its cause is gone, and whether a person has to see to that.
func TestWaitOfEachClass(t *testing.T) {
	t.Parallel()
	const ends, waitsAlone, waitsForAPerson = "ends", "waits", "waits for a person"
	decided := map[string]string{
		"unknown": ends, "invalid": ends, "busy": ends, "transient": ends, "corrupt": ends, "future-version": ends, "fenced": ends,
		"no-space": waitsAlone, "denied": waitsAlone, "removed": waitsAlone, "device": waitsForAPerson,
	}
	for c := lifecycle.Class(0); !strings.HasPrefix(c.String(), "class "); c++ {
		is := ends
		if waits(c) {
			if is = waitsForAPerson; (&storageWait{class: c}).clears() {
				is = waitsAlone
			}
		}
		require.Equal(t, decided[c.String()], is, "decide in storage.go about %s", c)
		delete(decided, c.String())
	}
	require.Empty(t, decided, "no class")
}
