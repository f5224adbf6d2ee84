package envelope_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

var format = envelope.Format{Key: "version", Version: 2, Max: 256}

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
	require.NoError(t, format.Decode(line, &got))
	require.Equal(t, `{"version":2,"checksum":"crc32c:caab4bc1"}`+"\n", string(line))
}

// The bytes of the seals are those of every file that was written so far.
func TestSeals(t *testing.T) {
	t.Parallel()
	const check = "123456789" // whose CRC-32C the catalogues have: e3069283
	for seal, want := range map[envelope.Seal]string{
		envelope.Checksum:     check + `,"checksum":"crc32c:e3069283"}` + "\n",
		envelope.CRC:          check + `,"crc":"e3069283"}` + "\n",
		envelope.BigEndian:    check + "\xe3\x06\x92\x83",
		envelope.LittleEndian: check + "\x83\x92\x06\xe3",
	} {
		require.Equal(t, want, string(seal.Append([]byte(check))))
		body, err := seal.Open([]byte(want))
		require.NoError(t, err)
		require.Equal(t, check, string(body))
		for i := range len(want) * 8 {
			bad := []byte(want)
			bad[i/8] ^= 1 << (i % 8)
			_, err := seal.Open(bad)
			require.ErrorIs(t, err, envelope.ErrCorrupt, "bit %d", i)
		}
		for i := range len(want) {
			_, err := seal.Open([]byte(want[:i]))
			require.ErrorIs(t, err, envelope.ErrCorrupt, "%d bytes", i)
		}
	}
	require.Equal(t, envelope.Sum([]byte(check)), envelope.Sum([]byte("1234"), nil, []byte("56789")))
}

// Every flipped bit and every cut of a line is noticed.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	line, err := format.Encode(body{Name: "something", Count: 12})
	require.NoError(t, err)
	for i := range len(line) * 8 {
		bad := bytes.Clone(line)
		bad[i/8] ^= 1 << (i % 8)
		require.ErrorIs(t, format.Decode(bad, &body{}), envelope.ErrCorrupt, "bit %d", i)
	}
	for i := range line {
		require.ErrorIs(t, format.Decode(line[:i], &body{}), envelope.ErrCorrupt)
		require.ErrorIs(t, format.Decode(line[i+1:], &body{}), envelope.ErrCorrupt)
	}
	require.ErrorIs(t, format.Decode(append(bytes.Clone(line), line...), &body{}), envelope.ErrCorrupt)
}

func TestVersions(t *testing.T) {
	t.Parallel()
	require.NoError(t, format.Decode(sealed(`{"version":1`), &body{}))
	require.ErrorIs(t, format.Decode(sealed(`{"version":3,"x":[{}]`), &body{}), envelope.ErrFutureVersion)
	for _, bad := range []string{`{"version":0`, `{"version":-1`, `{"version":02`, `{"version":"2"`, `{"version":+2`, `{"version": 2`, `{"version":99999999999999999999`, `{"Version":2`} {
		require.ErrorIs(t, format.Decode(sealed(bad), &body{}), envelope.ErrCorrupt, bad)
	}
}

// In a file of its own a newer version is believed as it stands: it may seal in another way.
func TestNewerFile(t *testing.T) {
	t.Parallel()
	file := format
	file.File = true
	newer := []byte(`{"version":3,"counters":{}}`)
	require.ErrorIs(t, file.Decode(newer, &body{}), envelope.ErrFutureVersion)
	require.ErrorIs(t, format.Decode(newer, &body{}), envelope.ErrCorrupt)
	require.ErrorIs(t, file.Decode([]byte(`{"version":2,"count":3}`), &body{}), envelope.ErrCorrupt)
}

func TestBounds(t *testing.T) {
	t.Parallel()
	_, err := format.Encode(body{Name: strings.Repeat("x", 300)})
	require.ErrorContains(t, err, "more than the 256 of a line")
	require.ErrorIs(t, format.Decode(sealed(`{"version":2,"name":"`+strings.Repeat("x", 300)+`"`), &body{}), envelope.ErrCorrupt)
	deep := func(n int) []byte {
		return sealed(`{"version":2,"x":` + strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	large := format
	large.Max = 4096
	require.NoError(t, large.Decode(deep(strictjson.MaxDepth-1), &body{}))
	require.ErrorIs(t, large.Decode(deep(strictjson.MaxDepth), &body{}), envelope.ErrCorrupt)
	_, err = format.Encode([]int{1})
	require.Error(t, err)
	require.ErrorIs(t, format.Decode(sealed(`{"version":2,"count":"no number"`), &body{}), envelope.ErrCorrupt)
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
			require.True(t, strings.Contains(err.Error(), envelope.ErrCorrupt.Error()) || strings.Contains(err.Error(), envelope.ErrFutureVersion.Error()))
			return
		}
		again, err := format.Encode(got)
		require.NoError(t, err)
		var back body
		require.NoError(t, format.Decode(again, &back))
		require.Equal(t, got, back)
	})
}
