package redact_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

// The same examples in every run; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// placed draws a secret in its text somewhere in random text; what stands around
// never ends in a quote or blank that would be part of the value.
func placed(t *rapid.T) (text, secret string) {
	c := rapid.SampledFrom(secrets).Draw(t, "secret")
	around := rapid.StringMatching(`([ a-zA-Z0-9:=/"'@.\\{}<>\n-]|é|password|token|://|-----){0,40}`)
	return around.Draw(t, "before") + "\n" + fill(c.text, c.secret) + "\n" + around.Draw(t, "after"), c.secret
}

func TestNeverSurvives(t *testing.T) {
	t.Parallel()
	r, err := redact.New(nil)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		text, secret := placed(t)
		got, n := r.String(text)
		require.NotContains(t, got, secret)
		require.Positive(t, n)
		again, n := r.String(got)
		require.Equal(t, got, again)
		require.Zero(t, n)

		raw := escaped(t, text)
		out, n, err := r.JSON([]byte(`{"a":[` + raw + `]}`))
		require.NoError(t, err)
		require.Positive(t, n)
		var v struct{ A []string }
		require.NoError(t, json.Unmarshal(out, &v))
		require.Equal(t, got, v.A[0], "JSON hides what text hides")
	})
}

// A token needs no boundary on its left: directly behind a word it is hidden too.
func TestGlued(t *testing.T) {
	t.Parallel()
	r, err := redact.New(nil)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SampledFrom([]string{akia, "ghp_" + body(36), "glpat-" + body(20), "sk-ant-" + body(40), "sk-" + body(48), "npm_" + body(36)}).Draw(t, "secret")
		before := rapid.StringMatching(`[a-zA-Z0-9_.\\-]{0,20}`).Draw(t, "before")
		after := rapid.StringMatching(`[a-zA-Z0-9_.\\-]{0,20}`).Draw(t, "after")
		got, _ := r.String(before + secret + after)
		require.NotContains(t, got, secret)
	})
}

// escaped encodes s with escapes of every kind, drawn per byte.
func escaped(t *rapid.T, s string) string {
	var b strings.Builder
	how := rapid.SliceOfN(rapid.IntRange(0, 3), 8, 8).Draw(t, "escapes")
	b.WriteByte('"')
	for i, c := range s {
		switch {
		case c == '/' && how[i%8] < 2:
			b.WriteString(`\/`)
		case c < 0x20, c == '"', c == '\\', how[i%8] == 0:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func FuzzBytes(f *testing.F) {
	for _, c := range secrets {
		f.Add([]byte(fill(c.text, c.secret) + "]" + fill(c.text, c.secret)))
	}
	for _, c := range people {
		f.Add([]byte(c.text + strings.Replace(c.text, "§", c.secret, 1)))
	}
	f.Add([]byte("password=[redacted:x]hunter2 ://a:[redacted:y]b@c"))
	f.Add([]byte("p\x00a\x00s\x00s\x00=\x00h\x00u\x00n\x00t\x00e\x00r\x002\x00 \x1b[1mtoken\x1b[m: \\u001b[3ma1b2c3d4e5f6"))
	f.Add([]byte("AKIA" + "IOSFODNN7EXAMPLEsk-" + hexBody(32) + "hf_" + body(34)))
	r, err := redact.New([]string{`\b[a-c]+\b`, `^.`, `x.*y`})
	require.NoError(f, err)
	plain, err := redact.New(nil)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, r := range []*redact.Redactor{r, plain} {
			in := bytes.Clone(b)
			once, n := r.Bytes(b)
			require.Equal(t, in, b, "the input stays")
			require.LessOrEqual(t, len(once), 9*len(b)+32)
			if n == 0 {
				require.Equal(t, b, once)
			}
			twice, n := r.Bytes(once)
			require.Equal(t, string(once), string(twice))
			require.Zero(t, n)
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, c := range secrets {
		raw, err := json.Marshal(map[string]any{"password": fill(c.text, c.secret), fill(c.text, c.secret): []any{1, c.secret, nil}})
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Add([]byte(`{"password":"\ud800\u002dhunter2\/","x":[{"token":{}}]}`))
	r, err := redact.New([]string{"é|b"})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, n, err := r.JSON(raw)
		if !json.Valid(raw) {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.LessOrEqual(t, len(once), 9*len(raw)+32)
		require.True(t, json.Valid(once), "%s", once)
		require.Equal(t, shape(t, raw), shape(t, once))
		if n == 0 {
			require.Equal(t, raw, once)
		}
		twice, n, err := r.JSON(once)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
		require.Zero(t, n)
	})
}

// shape is a JSON value's tokens with every string the same.
func shape(t *testing.T, raw []byte) string {
	var b strings.Builder
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for {
		tok, err := d.Token()
		if err != nil {
			require.ErrorContains(t, err, "EOF")
			return b.String()
		}
		if _, ok := tok.(string); ok {
			tok = "string"
		}
		fmt.Fprintf(&b, "%T %v\n", tok, tok)
	}
}

// A key is hidden at every place of a text and before every byte: places are asked eight at
// a time.
func TestAtEveryPlace(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	for _, key := range []string{"ghp_" + body(36), "AKIA" + strings.ToUpper(body(16)), "--password hunter22x", "é\u200b=", "SK" + hexBody(32), "https://bob:hunter2@host"} {
		alone, n := r.String("\n" + key)
		for i := range 40 {
			text := strings.Repeat("w ", i) + "\n" + key
			for _, behind := range []string{"", "\n", "\n" + strings.Repeat(" w", i)} {
				got, m := r.String(text + behind)
				require.Equal(t, strings.Repeat("w ", i)+alone+behind, got)
				require.Equal(t, n, m)
			}
		}
	}
}
