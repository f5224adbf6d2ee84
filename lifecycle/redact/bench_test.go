package redact_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

// prompt is 1 MiB of this package's own source: code and prose, names and signs.
func prompt(tb testing.TB) []byte {
	var b []byte
	for _, name := range []string{"doc.go", "json.go", "name.go", "random.go", "assign.go"} {
		text, err := os.ReadFile(name)
		require.NoError(tb, err)
		b = append(b, text...)
	}
	return bytes.Repeat(b, 1<<20/len(b)+1)[:1<<20]
}

func BenchmarkBytes(b *testing.B) {
	text := prompt(b)
	key := []byte("ghp_" + body(36) + "\n")
	many := bytes.Repeat(append(bytes.Clone(text[:1000]), key...), 1000)
	custom, err := redact.New([]string{`CORP-\d+`, `(?i)employee \w+`})
	require.NoError(b, err)
	plain := &redact.Redactor{}
	for _, c := range []struct {
		name string
		r    *redact.Redactor
		text []byte
	}{{"clean", plain, text}, {"1000keys", plain, many}, {"2patterns", custom, text}, {"1KiB", plain, text[:1024]}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				c.r.Bytes(c.text)
			}
		})
	}
}

func BenchmarkJSON(b *testing.B) {
	raw, err := json.Marshal(string(prompt(b)))
	require.NoError(b, err)
	r := &redact.Redactor{}
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		_, _, err := r.JSON(raw)
		require.NoError(b, err)
	}
}

// Text made to send a rule over the same bytes again and again costs no more
// than linear time: quadratic time for 256 KiB would be minutes.
func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes ten times as long; -short")
	}
	t.Parallel()
	r := &redact.Redactor{}
	for _, unit := range []string{
		"eyJ", "eyJaaaaaaaaaaaaaaaa.", "sk-ant-", "xoxb-", "sk-", "npm_", "password=", `password="`, `password='a`, "://", "://a:b", ":", "=", "Bearer ", "bearer a",
		"-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nA: b\n", "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("A: b\n", 9000),
		"[redacted:", "[redacted:a]", "a", "1a", "AKIA", "password=\\", "authorization:bearer ", "glpat-....................", "SG.",
		"-----END PRIVATE KEY-----", pemBody + "\n-----END PRIVATE KEY-----", "abc -----END PRIVATE KEY-----", "--", "--password ", "--user a:", " -u a:b", " -p", "mysql -p", "<a>", `token", "`,
		"Cookie: a=b;", "Cookie:", "\x1b[", "\x1b[1m", "a\x00", "\x00a", "\x00", `\u001b[1m`, `\\`, "Q~", "1Q~", ".atlasv1.", "_mmk", ":A", "pat.", "value=", "string = ", "password=[redacted:a]x1y2z3",
		"\x1b]", "\x1b]a\x07", "\x1b]" + strings.Repeat("a", 9000), `\u001b]`, `\u001b]\u0007`, "\u200b", "\u00a0", "set ", "ENV ", "setenv TOKEN ", "set -", " -", " -a", "curl -u", "curl -b a=b", "machine login password ", "Cookie: a=b c;", "Cookie: sid=" + drawn + " ",
		"AKIA" + "IOSFODNN7EXAMPLEsk-" + hexBody(32),
		"PASSWORD '", "password 'a", "identified by x1y2z3w ", "create user a identified by 'b", "IDENTIFIED BY \"a\"", "BY '", "/user:", "Fernet(\"", "setx A b", "password(\"", "setPassword('a1b2c3');",
		":5432:", "a:5432:b:c:", "a:5432:b:c:d\n", "@tcp(", "a:b@tcp(", ":thin:a/", "Private-Lines: 1\n", "Private-MAC: a", pemBody + "\nPrivate-MAC: a\n", "---- BEGIN X PRIVATE KEY ----", "\"d\":\"" + drawn + drawn[:2] + "\"",
		"password: |\n", "password: |\n  a\n", "password: |\n" + strings.Repeat("  a\n", 1000), " password: >\n ", "d  ", "d\t", "d |", "password  a", "password   a1b2c3d4\n", "| password | a1b2c3 |\n", "E  ", "TOKEN  AGE\n", "TOKEN  AGE\n" + drawn + "  1\n",
		"1→", "     1→password: |\n     2→  a\n", "x.go:1:", "a.b-1-", "a/b:", "+password: |\n+ a\n", "> ", `password: |\n  a`, `DB_PASSWORD   x\n`, "1:password  ", "<password>\n1:", "PASS: ", "0 PASS:a-b", "token::a", "password: &a !!b ", "password: !a ",
		"INSERT INTO a (password) VALUES ('a', ", "INSERT INTO a (password", "insert into (((", "(password) VALUES ('a1b2c3'),", ",password", "a,password\n", "a,password\nb,c1d2e3f4\n", "PASSWORD\n", "PASSWORD $$", "PASSWORD $a", "SET PASSWORD FOR a", "crypt('", "requirepass ",
		"┼", "│a│password│\n├┼┤\n│x│a1b2c3│\n", "`password` |", "b'" + fernetKey, "='", ".run('", "> AUTH a1b2c3d ", "a:b | chpasswd", "password for a", "password for a: b1c2d3 ", "Unseal Key ", "password=\"\"\"", " -pw",
		"-+-", "|--|\n", "| password |\n|---|\n", "|a|password|\n|-|-|\n|x|a1b2c3|\n", "a|b\n-+-\n", "\"password\"\r\n\r\n", "name=\"password\"\r\n\r\na1b2c3\r\n", "sshpass -p", "redis-cli -a x1y2z3 ", "$2a$", "{SSHA}",
	} {
		text := bytes.Repeat([]byte(unit), 1<<18/len(unit))
		took := time.Hour
		for try := 0; try < 3 && took >= 5*time.Second; try++ { // the machine may be busy
			start := time.Now()
			r.Bytes(text)
			took = time.Since(start)
		}
		require.Less(t, took, 5*time.Second, unit[:min(len(unit), 40)])
	}
}
