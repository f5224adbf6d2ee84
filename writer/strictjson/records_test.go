package strictjson_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

func TestRecords(t *testing.T) {
	t.Parallel()
	const one, two, three = `{"type":"a"}`, `{"at":1,"type":"b"}`, `{"at":2}`
	nested := `{"at":9,"list":[{"type":"part"},{"type":"more"},{"type":`
	for line, want := range map[string][]string{
		" " + one + two + "\t" + three + " ": {one, two, three},
		`{"type":"a","x":"y` + one + two:     {`!{"type":"a","x":"y`, one, two},
		one + `{"type":"torn` + two:          {one, `!{"type":"torn`, two},
		one + `{"type":"torn`:                {one, `!{"type":"torn`},
		`tail"}]}` + one + "\x00\x00" + two:  {`!tail"}]}`, one, "!\x00\x00", two},
		nested + two:                         {"!" + nested, two},
		nested:                               {"!" + nested},
		`1 null`:                             {`1`, `null`},
		"":                                   nil,
	} {
		var got []string
		for record, err := range strictjson.Records([]byte(line), `{"type":`, `{"at":`) {
			if err != nil {
				record = append([]byte("!"), record...)
			}
			got = append(got, string(record))
		}
		require.Equal(t, want, got, line)
	}
	n := 0
	for range strictjson.Records([]byte(one+two), `{"type":`) {
		n++
		break
	}
	require.Equal(t, 1, n)
	for range strictjson.Records([]byte(strings.Repeat(`{"type":`, 100)+one), `{"type":`) {
		n++
	}
	require.Equal(t, 2, n, "a line that is torn so often is given up")
}
