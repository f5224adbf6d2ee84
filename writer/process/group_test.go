package process

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// What comes out may be negated and given to kill(2), which takes 32 bits: 0 and 1
// mean our own group and everybody, and so does what is cut to them.
func FuzzDecodeGroup(f *testing.F) {
	for _, s := range []string{"", "{}", "null", `{"pgid":0}`, `{"pgid":1}`, `{"pgid":-1}`, `{"pgid":2}`, `{"pgid":4294967296}`, `{"pgid":4294967297}`, `{"pgid":2147483648}`, `{"pgid":7,"start":"1","boot":"b","command":"\u001b","since":"2026-01-02T03:04:05Z"}`, "{\"pgid\":7}" + strings.Repeat(" ", 4000) + "\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g := decodeGroup(data)
		require.True(t, g.PGID == 0 || g.PGID > 1 && g.PGID <= math.MaxInt32, "pgid %d", g.PGID)
		for _, r := range (&Orphan{Group: g, path: "x"}).String() {
			require.True(t, unicode.IsPrint(r))
		}
		if g.PGID == 0 {
			return
		}
		again, err := json.Marshal(g)
		if err == nil {
			require.Equal(t, g.PGID, decodeGroup(again).PGID)
		}
	})
}
