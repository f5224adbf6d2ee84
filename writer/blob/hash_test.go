package blob

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

func TestHash(t *testing.T) {
	h := hashOf(content)
	require.Len(t, h.String(), 64)
	parsed, err := ParseHash(h.String())
	require.NoError(t, err)
	require.Equal(t, h, parsed)

	data, err := json.Marshal(map[Hash]Hash{h: h})
	require.NoError(t, err)
	var back map[Hash]Hash
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, map[Hash]Hash{h: h}, back)
	require.Error(t, json.Unmarshal([]byte(`"ab"`), &parsed))
	require.Equal(t, h, parsed)
}

func TestParseHashRefuses(t *testing.T) {
	for _, s := range []string{
		"", "ab", strings.Repeat("a", 63), strings.Repeat("a", 65), strings.Repeat("a", 66), strings.Repeat("A", 64), strings.Repeat("g", 64),
		"../" + strings.Repeat("a", 61), strings.Repeat("\x1b", 1000),
	} {
		_, err := ParseHash(s)
		require.ErrorIs(t, err, writer.ErrInvalid)
		require.NotContains(t, err.Error(), "\x1b")
		require.Less(t, len(err.Error()), 500)
	}
}

func FuzzParseHash(f *testing.F) {
	f.Add(hashOf(content).String())
	f.Add("AB")
	f.Fuzz(func(t *testing.T, s string) {
		if h, err := ParseHash(s); err == nil {
			require.Equal(t, s, h.String())
		}
	})
}
