package envelope_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

var format = envelope.Format{Version: 2, Max: 256}

type body struct {
	Name  string `json:"name,omitempty"`
	Count int    `json:"count,omitempty"`
}

// sealed is a line of any text with a checksum that fits.
func sealed(text string) []byte {
	return fmt.Appendf(nil, "%s,\"checksum\":\"crc32c:%08x\"}\n", text, crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

func TestLineIsAsItHasAlwaysBeen(t *testing.T) {
	t.Parallel()
	line, err := format.Encode(body{Name: "a", Count: 3})
	require.NoError(t, err)
	require.Equal(t, `{"version":2,"name":"a","count":3,"checksum":"crc32c:80c14904"}`+"\n", string(line))
	var got body
	require.NoError(t, format.Decode(line, &got))
	require.Equal(t, body{Name: "a", Count: 3}, got)

	line, err = format.Encode(body{})
	require.NoError(t, err)
	require.NoError(t, format.Decode(line, nil))
}

// Every flipped bit and every cut of a line is noticed.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	line, err := format.Encode(body{Name: "something", Count: 12})
	require.NoError(t, err)
	for i := range len(line) * 8 {
		bad := bytes.Clone(line)
		bad[i/8] ^= 1 << (i % 8)
		require.ErrorIs(t, format.Decode(bad, nil), writer.ErrCorrupt, "bit %d", i)
	}
	for i := range line {
		require.ErrorIs(t, format.Decode(line[:i], nil), writer.ErrCorrupt)
		require.ErrorIs(t, format.Decode(line[i+1:], nil), writer.ErrCorrupt)
	}
	require.ErrorIs(t, format.Decode(append(bytes.Clone(line), line...), nil), writer.ErrCorrupt)
}

func TestVersions(t *testing.T) {
	t.Parallel()
	require.NoError(t, format.Decode(sealed(`{"version":1`), nil))
	require.ErrorIs(t, format.Decode(sealed(`{"version":3,"x":[{}]`), nil), writer.ErrFutureVersion)
	for _, bad := range []string{`{"version":0`, `{"version":-1`, `{"version":02`, `{"version":"2"`, `{"version":+2`, `{"version": 2`, `{"version":99999999999999999999`, `{"Version":2`} {
		require.ErrorIs(t, format.Decode(sealed(bad), nil), writer.ErrCorrupt, bad)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	_, err := format.Encode(body{Name: strings.Repeat("x", 300)})
	require.ErrorIs(t, err, writer.ErrInvalid)
	require.ErrorIs(t, format.Decode(sealed(`{"version":2,"name":"`+strings.Repeat("x", 300)+`"`), nil), writer.ErrCorrupt)
	deep := func(n int) []byte {
		return sealed(`{"version":2,"x":` + strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	require.NoError(t, format.Decode(deep(31), nil))
	require.ErrorIs(t, format.Decode(deep(32), nil), writer.ErrCorrupt)
	require.NoError(t, format.Decode(sealed(`{"version":2,"x":"`+strings.Repeat(`[\"`, 40)+`"`), nil))
	_, err = format.Encode([]int{1})
	require.Error(t, err)
	require.ErrorIs(t, format.Decode(sealed(`{"version":2,"count":"no number"`), &body{}), writer.ErrCorrupt)
}

func FuzzDecode(f *testing.F) {
	line, err := format.Encode(body{Name: "a", Count: 3})
	require.NoError(f, err)
	f.Add(line)
	f.Add(sealed(`{"version":3`))
	f.Add(sealed(`{"version":2,"x":[[[{}]]],"y":"\""`))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		var got body
		if err := format.Decode(line, &got); err != nil {
			require.True(t, strings.Contains(err.Error(), writer.ErrCorrupt.Error()) || strings.Contains(err.Error(), writer.ErrFutureVersion.Error()))
			return
		}
		again, err := format.Encode(got)
		require.NoError(t, err)
		var back body
		require.NoError(t, format.Decode(again, &back))
		require.Equal(t, got, back)
	})
}
