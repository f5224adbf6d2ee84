package plain_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/plain"
)

func TestAsWritten(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`: `{}`,
		`"\u003c\u003E\u0026 \u00e9 \ud83d\ude80 a\/b"`: `"<>& é 🚀 a/b"`,
		// What has to be escaped, and what is not visible, stays so.
		`"\u0022 \u005c \" \\ \n \t \u000a \u001b \u2028 \u202e \u200b"`: `"\u0022 \u005c \" \\ \n \t \u000a \u001b \u2028 \u202e \u200b"`,
		`"\\u003e \\\u003e \\\\u003e"`:                                   `"\\u003e \\> \\\\u003e"`,
		// What is no character stays as well.
		`"\ud83d"`: `"\ud83d"`, `"\ud83d\u003e"`: `"\ud83d>"`, `"\ude80\ud83d"`: `"\ude80\ud83d"`, `"\ufffd"`: `"\ufffd"`, `"\u12`: `"\u12`, `\`: `\`, `\u003e`: `>`, `"\u-03e"`: `"\u-03e"`,
	} {
		require.Equal(t, want, plain.AsWritten([]byte(in)), "%s", in)
		if json.Valid([]byte(in)) {
			require.JSONEq(t, in, want)
		}
	}
}
