package writer

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestOwnerString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		owner Owner
		want  string
	}{
		{Owner{}, "a process that left no record"},
		{Owner{PID: 7}, "pid 7"},
		{Owner{PID: 7, Host: "h", Command: "run auth"}, "pid 7 on h (run auth)"},
		{Owner{PID: 7, Command: "\x1b[2Jrun\n\u202e\xff"}, "pid 7 (?[2Jrun???)"},
	} {
		require.Equal(t, c.want, c.owner.String())
	}
	long := Owner{PID: 7, Command: strings.Repeat("ö", 1000)}.String()
	require.Less(t, utf8.RuneCountInString(long), 220)
	require.Contains(t, long, "…")
}

func TestSelf(t *testing.T) {
	t.Parallel()
	o := Self("run")
	require.Equal(t, os.Getpid(), o.PID)
	require.Equal(t, "run", o.Command)
	data, err := json.Marshal(o)
	require.NoError(t, err)
	require.Equal(t, o, decodeOwner(data))
	require.Contains(t, o.String(), " since ")
}

func FuzzDecodeOwner(f *testing.F) {
	for _, s := range []string{"", "{}", "null", "[]", `{"pid":7}`, `{"pid":-7,"command":"x"}`, `{"pid":1e99}`, `{"pid":7,"host":"\u001b[2J","command":"\u202e","since":"2026-01-02T03:04:05Z"}`, "{\"pid\":7}\x00\x00", strings.Repeat("[", 20000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := decodeOwner(data)
		require.GreaterOrEqual(t, o.PID, 0)
		s := o.String()
		require.Less(t, utf8.RuneCountInString(s), 600)
		for _, r := range s {
			require.True(t, unicode.IsPrint(r), "%q", s)
		}
		again, err := json.Marshal(o)
		if err == nil && len(again) <= maxRecord {
			require.Equal(t, s, decodeOwner(again).String())
		}
	})
}

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
