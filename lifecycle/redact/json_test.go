package redact_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	r, err := redact.New([]string{"é+"})
	require.NoError(t, err)
	key := "ghp_" + body(36)
	glpat := "glpat-" + body(20)
	for _, c := range []struct {
		name, in, want string
		n              int
	}{
		{"rest byte for byte", ` {"b" : 1.50, "a":"\u0041\/ ` + key + ` \u00e8",  "c":null } `, ` {"b" : 1.50, "a":"\u0041\/ [redacted:github-token] \u00e8",  "c":null } `, 1},
		{"escaped", `["` + strings.Replace(glpat, "-", `\u002d`, 1) + `!"]`, `["[redacted:gitlab-token]!"]`, 1},
		{"slash", `"https:\/\/bob:hunter@host\/x"`, `"https:\/\/bob:[redacted:url-password]@host\/x"`, 1},
		{"newline", `"\n` + key + `\n"`, `"\n[redacted:github-token]\n"`, 1},
		{"wide and surrogates", `"\ud83d\ude00é\u00e9è\ud800` + key + `\udc00"`, `"\ud83d\ude00[redacted:custom]è\ud800[redacted:github-token]\udc00"`, 2},
		{"by name", `{"password" : "hunter2", "x": "hunter2"}`, `{"password" : "[redacted:password]", "x": "hunter2"}`, 1},
		{"by name, escaped", `{"pass\u0077ord":"hunter2\""}`, `{"pass\u0077ord":"[redacted:password]"}`, 1},
		{"by name, header", `{"Authorization":"Bearer ` + body(20) + `"}`, `{"Authorization":"Bearer [redacted:authorization]"}`, 1},
		{"a name is for its own value", `{"password":1,"x":["hunter2"]}`, `{"password":1,"x":["hunter2"]}`, 0},
		{"not into a list", `{"password":["hunter2"]}`, `{"password":["hunter2"]}`, 0},
		{"a name twice", `{"` + key + `":1,"` + key + `a":{"` + key + `b":2}}`, `{"[redacted:github-token]":1,"[redacted:github-token] 2":{"[redacted:github-token] 3":2}}`, 3},
		{"nested", `"{\"password\": \"hunter2\"}"`, `"{\"password\": \"[redacted:password]\"}"`, 1},
		{"across strings", `["-----BEGIN PRIVATE KEY-----","` + pemBody + `"]`, `["-----BEGIN PRIVATE KEY-----","` + pemBody + `"]`, 0},
		{"half a pair", `"\ud800\u0067` + key[1:] + `"`, `"\ud800[redacted:github-token]"`, 1},
		{"again", `{"password":"a1![redacted:custom]"}`, `{"password":"a1![redacted:custom]"}`, 0},
		{"a flag's value", `["deploy","--token","` + body(24) + `","--x"]`, `["deploy","--token","[redacted:token]","--x"]`, 1},
		{"a flag's value, only the next", `["--password",1,"hunter2"]`, `["--password",1,"hunter2"]`, 0},
		{"beside a forged marker", `{"password":"[redacted:x]hunter2"}`, `{"password":"[redacted:password]"}`, 1},
		{"coloured", `{"password":"\u001b[31mhunter2"}`, `{"password":"\u001b[31m[redacted:password]"}`, 1},
		{"again, with blanks", `{"password":"a1 [redacted:custom] b2"}`, `{"password":"a1 [redacted:custom] b2"}`, 0},
	} {
		got, n, err := r.JSON([]byte(c.in))
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, string(got), c.name)
		require.Equal(t, c.n, n, c.name)
	}
}

func TestJSONInvalid(t *testing.T) {
	t.Parallel()
	r, err := redact.New(nil)
	require.NoError(t, err)
	for _, in := range []string{"", `"a`, `{"a":1,}`, `"\x"`, `"\u12"`, "1 2", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		out, n, err := r.JSON([]byte(in))
		require.ErrorContains(t, err, "redact json: ")
		require.Nil(t, out)
		require.Zero(t, n)
	}
}

// TestPairsInJSON gives the lists of variables that ECS and others have: a name beside a value.
func TestPairsInJSON(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	for _, text := range []string{
		`[{"name":"DB_PASSWORD","value":"§"}]`, `[{"Key": "DB_PASSWORD", "Value": "§"},{"Key":"x","Value":"y"}]`,
	} {
		got, n, err := r.JSON([]byte(strings.Replace(text, "§", "hunter2x", 1)))
		require.NoError(t, err)
		require.Equal(t, strings.Replace(text, "§", "[redacted:password]", 1), string(got))
		require.Equal(t, 1, n)
	}
	for _, text := range []string{
		`[{"name":"DB_HOST","value":"hunter2x"}]`, `[{"Key":"DB_PASSWORD"},{"Value":"hunter2x"}]`, `{"text":"the password","value":"hunter2x"}`, `{"name":"DB_PASSWORD","n":1,"x":"hunter2x"}`,
	} {
		got, n, err := r.JSON([]byte(text))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		require.Zero(t, n)
	}
}
