package files

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// sealed puts a checksum behind a body.
func sealed(body string) []byte {
	return fmt.Appendf([]byte(body), "%s%08x\"}\n", checksumKey, crc32.Checksum([]byte(body), castagnoli))
}

const head = `{"schemaVersion":1,"at":"2026-02-14T09:00:00Z"`

func TestDecode(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("ab", 32)
	file := `{"path":"a","mode":"100644","size":1,"hash":"` + hash + `"}`
	for name, body := range map[string]string{
		"a file":         head + `,"files":[` + file + `]`,
		"unknown member": head + `,"new":{"x":[1]},"files":[]`,
	} {
		s, err := Decode(sealed(body))
		require.NoError(t, err, name)
		require.Equal(t, time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC), s.At)
	}
	for name, body := range map[string]string{
		"no version":      `{"at":"2026-02-14T09:00:00Z","files":[]`,
		"version 0":       `{"schemaVersion":0,"at":"2026-02-14T09:00:00Z","files":[]`,
		"no time":         `{"schemaVersion":1,"files":[]`,
		"local time":      `{"schemaVersion":1,"at":"2026-02-14T09:00:00+01:00","files":[]`,
		"twice":           head + `,"files":[` + file + `,` + file + `]`,
		"not sorted":      head + `,"files":[{"path":"b","mode":"40755"},` + file + `]`,
		"outside":         head + `,"files":[{"path":"../a","mode":"40755"}]`,
		"absolute":        head + `,"files":[{"path":"/a","mode":"40755"}]`,
		"not clean":       head + `,"files":[{"path":"a//b","mode":"40755"}]`,
		"NUL":             head + `,"files":[{"path":"a\u0000","mode":"40755"}]`,
		"no path":         head + `,"files":[{"mode":"40755"}]`,
		"no mode":         head + `,"files":[{"path":"a","hash":"` + hash + `"}]`,
		"mode of a FIFO":  head + `,"files":[{"path":"a","mode":"10644","hash":"` + hash + `"}]`,
		"setuid":          head + `,"files":[{"path":"a","mode":"104755","hash":"` + hash + `"}]`,
		"setgid":          head + `,"files":[{"path":"a","mode":"102755","hash":"` + hash + `"}]`,
		"sticky":          head + `,"files":[{"path":"a","mode":"41777"}]`,
		"mode in decimal": head + `,"files":[{"path":"a","mode":"999","hash":"` + hash + `"}]`,
		"no hash":         head + `,"files":[{"path":"a","mode":"100644"}]`,
		"folder's hash":   head + `,"files":[{"path":"a","mode":"40755","hash":"` + hash + `"}]`,
		"folder's size":   head + `,"files":[{"path":"a","mode":"40755","size":1}]`,
		"negative size":   head + `,"files":[{"path":"a","mode":"100644","size":-1,"hash":"` + hash + `"}]`,
		"file's target":   head + `,"files":[{"path":"a","mode":"100644","target":"x","hash":"` + hash + `"}]`,
		"link's hash":     head + `,"files":[{"path":"a","mode":"120000","target":"x","hash":"` + hash + `"}]`,
		"plain in base64": head + `,"files":[{"pathBytes":"YQ==","mode":"40755"}]`,
		"bad base64":      head + `,"files":[{"pathBytes":"YQ","mode":"40755"}]`,
		"a reason":        head + `,"skipped":[{"path":"a","reason":"mood"}],"files":[]`,
		"after the end":   head + `,"files":[],"checksum":"x"`,
	} {
		_, err := Decode(sealed(body))
		require.ErrorIs(t, err, writer.ErrCorrupt, name)
	}
	_, err := Decode(sealed(`{"schemaVersion":2,"what":1`))
	require.ErrorIs(t, err, writer.ErrFutureVersion)
	whole := sealed(head + `,"files":[` + file + `]`)
	for i := range whole { // every byte counts
		damaged := append([]byte{}, whole...)
		damaged[i] ^= 1
		_, err := Decode(damaged)
		require.Error(t, err, "byte %d", i)
		_, err = Decode(whole[:i])
		require.Error(t, err, "cut at %d", i)
	}
}

func FuzzDecode(f *testing.F) {
	x := Snapshot{At: time.Unix(1, 2), Paths: []string{"a", "\xff"}, Skipped: []Skip{{Path: "p", Reason: Special}},
		Files: []Fingerprint{{Path: "a", Mode: 0o644, Size: 3}, {Path: "a\xff", Mode: 0o4755}}}
	f.Add(string(x.Encode()))
	f.Add(head + `,"files":[{"path":"d","mode":"40755"}]`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, data := range [][]byte{[]byte(body), sealed(body)} {
			s, err := Decode(data)
			if err != nil {
				continue
			}
			again, err := Decode(s.Encode())
			require.NoError(t, err)
			require.Equal(t, s, again)
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("!/a[!b-c]/**/*.o ", "a/b")
	f.Fuzz(func(_ *testing.T, line, path string) {
		if p, ok := parsePattern(line); ok {
			p.match(path, path, true)
		}
	})
}
