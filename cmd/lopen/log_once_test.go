package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A line of the log that was reworded would stand beside the command's own words again.
func TestToldTwiceAreLinesOfTheLog(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, dir := range []string{"../../actors", "../../lifecycle", "internal/loop"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			source.Write(data)
		}
	}
	for _, message := range toldTwice {
		require.Contains(t, source.String(), `Msg("`+message+`")`)
	}
}
