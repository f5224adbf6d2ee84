package wire_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// TestHeadOfStateIsDocumented compares the members that a listing finds at the beginning of
// state.json with those that docs/FORMATS.md names.
func TestHeadOfStateIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "FORMATS.md"))
	require.NoError(t, err)
	item := regexp.MustCompile(`(?s)\n2\. What a listing shows.*?:\n(.*?)\n3\. `).FindSubmatch(text)
	require.NotNil(t, item)
	var documented []string
	for _, m := range regexp.MustCompile("`(\\w+)`").FindAllSubmatch(item[1], -1) {
		documented = append(documented, string(m[1]))
	}
	state := wire.EncodeState(full(t), session.Mark{Epoch: 1, Seq: 2, Incarnation: "i", Iterations: 1, Messages: 1, Transcript: 1})
	var written []string
	r := strictjson.NewReader(state)
	r.Object(func(key string) { written = append(written, key); r.Raw() })
	require.NoError(t, r.Err())
	require.Equal(t, "schemaVersion", written[0])
	require.Equal(t, "checksum", written[len(written)-1])
	require.Equal(t, documented, written[1:slices.Index(written, "settings")])
}
