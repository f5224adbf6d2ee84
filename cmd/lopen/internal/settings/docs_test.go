package settings_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
)

var updateDocs = flag.Bool("update-docs", false, "write the table of settings into the documentation anew")

// TestSettingsAreDocumented requires that docs/RUN.md has the table that the settings make.
func TestSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	const page, begin, end = "../../../../docs/RUN.md", "-update-docs -->\n", "<!-- end of settings -->"
	v, err := settings.Load(settings.Sources{})
	require.NoError(t, err)
	var table strings.Builder
	table.WriteString("| setting | whose | what |\n|---|---|---|\n")
	for _, e := range v.All() {
		row := fmt.Sprintf("| `%s` | %s | %s |\n", e.Key, e.Whose, strings.ReplaceAll(e.Help, "|", "\\|"))
		require.LessOrEqual(t, len(row), 121, "%s", row)
		table.WriteString(row)
	}
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(data), begin)
	require.True(t, found)
	is, after, found := strings.Cut(rest, end)
	require.True(t, found)
	if *updateDocs {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+table.String()+end+after), 0o644)) // #nosec G306 -- a page
		return
	}
	require.Equal(t, table.String(), is)
}
