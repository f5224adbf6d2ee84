package writer

import (
	"encoding/json"
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
	o := OwnerOf(os.Getpid(), "run")
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
