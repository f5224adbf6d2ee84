package shelf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecord(t *testing.T) {
	t.Parallel()
	data := encode("magic\n", []byte("a"), nil, []byte("ccc"))
	fields, err := decode(data, "magic\n", 3)
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("a"), {}, []byte("ccc")}, fields)
	for _, n := range []int{0, 2, 4} {
		_, err = decode(data, "magic\n", n)
		require.Error(t, err)
	}
	_, err = decode(data, "other\n", 3)
	require.Error(t, err)
}

func FuzzDecode(f *testing.F) {
	f.Add(encode("m", []byte("a"), []byte("b"))[1:])
	f.Fuzz(func(t *testing.T, body []byte) {
		// With the right checksum, so that what is behind it is reached.
		data := encode("m" + string(body))
		fields, err := decode(data, "m", 2)
		if err == nil {
			require.LessOrEqual(t, len(fields[0])+len(fields[1]), len(body))
		}
		_, _ = decode(body, "m", 2)
	})
}
