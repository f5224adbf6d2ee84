package redact_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

const drawn = "Zk29fjLq35" + "aBcDeFgHiJ"

// The words say what the line does not: which flag stands before which value, and where
// a value ends.
func TestArgsJudgesWords(t *testing.T) {
	t.Parallel()
	const p, c, s, a = "[redacted:password]", "[redacted:cookie]", "[redacted:secret]", "[redacted:authorization]"
	for _, tt := range []struct{ argv, want []string }{
		{[]string{"curl", "-H", "Cookie: sid=" + drawn, "https://h/"}, []string{"curl", "-H", "Cookie: sid=" + c, "https://h/"}},
		{[]string{"-H", "Cookie: sid=" + drawn, "https://h/"}, []string{"-H", "Cookie: sid=" + c, "https://h/"}},
		{[]string{"x", "Cookie: sid=abcDefGhij", "https://h/"}, []string{"x", "Cookie: sid=" + c, "https://h/"}},
		{[]string{"-HCookie: sid=" + drawn}, []string{"-HCookie: sid=" + c}},
		{[]string{"curl", "-HCookie: sid=" + drawn, "x"}, []string{"curl", "-HCookie: sid=" + c, "x"}},
		{[]string{"curl", "-sHAuthorization: Bearer a1b2c3"}, []string{"curl", "-sHAuthorization: Bearer " + a}},
		{[]string{"--header=Cookie: sid=" + drawn, "x"}, []string{"--header=Cookie: sid=" + c, "x"}},
		{[]string{"x", "--password", "Zk29 fjLq06aBcDeF"}, []string{"x", "--password", p}},
		{[]string{"x", "-password", "Zk29 fjLq06aBcDeF"}, []string{"x", "-password", p}},
		{[]string{"x", "--password=Zk29 fjLq06aBcDeF", "y"}, []string{"x", "--password=" + p, "y"}},
		{[]string{"--password", "Yk29fjLq17"}, []string{"--password", p}},
		{[]string{"--password", "hund"}, []string{"--password", p}},
		{[]string{"--token", "plainword"}, []string{"--token", "[redacted:token]"}},
		{[]string{"--secret", "line1\n" + drawn}, []string{"--secret", s}},
		{[]string{"curl", "-u", "bob:Zk29 fjLq11", "h"}, []string{"curl", "-u", "bob:" + p, "h"}},
		{[]string{"curl", "-ubob:hunter", "h"}, []string{"curl", "-ubob:" + p, "h"}},
		{[]string{"curl", "-sSLubob:hunter", "h"}, []string{"curl", "-sSLubob:" + p, "h"}},
		{[]string{"/usr/bin/curl", "-sSLu", "bob:hunter", "h"}, []string{"/usr/bin/curl", "-sSLu", "bob:" + p, "h"}},
		{[]string{"curl", "--proxy-user", "bob:hunter x"}, []string{"curl", "--proxy-user", "bob:" + p}},
		{[]string{"curl", "--user=bob:hunter x"}, []string{"curl", "--user=bob:" + p}},
		{[]string{"-ubob:" + drawn}, []string{"-ubob:" + p}},
		{[]string{"--cookie", "sid=" + drawn}, []string{"--cookie", "sid=" + c}},
		{[]string{"curl", "-b", "sid=" + drawn, "h"}, []string{"curl", "-b", "sid=" + c, "h"}},
		{[]string{"curl", "-bsid=" + drawn, "h"}, []string{"curl", "-bsid=" + c, "h"}},
		{[]string{"sshpass", "-p", "Zk29 fj", "ssh", "h"}, []string{"sshpass", "-p", p, "ssh", "h"}},
		{[]string{"docker", "login", "-p", "hunter"}, []string{"docker", "login", "-p", p}},
		{[]string{"mysql", "-phunter x", "db"}, []string{"mysql", "-p" + p, "db"}},
		{[]string{"--password", "abc[redacted:x]def"}, []string{"--password", p}},
	} {
		argv := append([]string(nil), tt.argv...)
		got, n := (&redact.Redactor{}).Args(tt.argv)
		require.Equal(t, tt.want, got)
		require.Equal(t, 1, n, tt.argv)
		require.Equal(t, argv, tt.argv, "argv stays")
		again, n := (&redact.Redactor{}).Args(got)
		require.Equal(t, got, again)
		require.Zero(t, n)
	}
	for _, argv := range [][]string{
		{"x", "--password", "--verbose"}, {"x", "--password", "$PASSWORD"}, {"x", "--token", "{{token}}"}, {"x", "--no-password", "build"},
		{"gh", "auth", "login", "--with-token", "build"}, {"x", "--password"}, {"x", "--private-key", "/keys/key.pem"}, {"x", "--password", ""}, {"x", "--password", "-x"},
		{"docker", "run", "-u", "1000:1000", "image"}, {"curl", "-b", "cookies.txt", "-c", "cookies.txt"}, {"mysql", "-p", "database"},
		{"tar", "-xu", "bob:hunter"}, {"ls", "-u", "-b", "a=b"}, {"mkdir", "-p", "a1/b2"}, {"sh", "-c", "--password"}, {"-"}, {"--"}, {"-u"},
		{"curl", "-H", "Accept: a/b", "-o", "sid=" + drawn}, {"make", "-HX"},
	} {
		got, n := (&redact.Redactor{}).Args(argv)
		require.Equal(t, argv, got)
		require.Zero(t, n)
	}
}

func TestArgsIsLinear(t *testing.T) {
	t.Parallel()
	start := time.Now()
	words := strings.Split(strings.Repeat("curl --password "+drawn+" -u a:b12345 ", 10_000), " ")
	_, n := (&redact.Redactor{}).Args(words)
	require.Equal(t, 20_000, n)
	require.Less(t, time.Since(start), 5*time.Second)
}

// What stands between a name and its value, or is written in another form.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, text string }{
		{"cookie", "Cookie: sid=% more words"},
		{"cookie", "Cookie: lang=en x; sid=% more; a=b"},
		{"password", "run --password\t% x"},
		{"password", "curl -su bob:% x"},
		{"password", "curl -sSLu bob:% x"},
		{"password", "curl --proxy-user bob:% x"},
		{"password", "curl -U bob:% x"},
		{"password", "curl -ubob:% x"},
		{"cookie", "curl -b sid=% x"},
		{"cookie", "curl -sb 'sid=%' x"},
		{"cookie", "curl --cookie sid=% x"},
		{"password", "password=\r%"},
		{"password", "password=\b%"},
		{"password", "password=\x1b]8;;https://x/\x1b\\%\x1b]8;;\x1b\\ x"},
		{"password", "password\x1b]8;;https://x/\a=%\x1b]8;;\a x"},
		{"password", `{"text":"password=\u001b]8;;https://x/\u0007%\u001b]8;;\u0007 x"}`},
		{"password", `{"text":"password=\u001b]8;;https://x/\u001b\\%\u001b]8;;\u001b\\ x"}`},
		{"password", "password=\x1bP+q544e\x1b\\%"},
		{"password", "password=\x1b7%\x1b8"},
		{"password", "\x1b]0;password=%\a"},
		{"password", "\x1b]8;;https://x/?password=%\x1b\\link\x1b]8;;\x1b\\"},
		{"url-password", "\x1b]8;;https://bob:%@x/\alink\x1b]8;;\a"},
		{"password", "machine h login u password %"},
		{"password", "machine h\n  login u\n  password %\n"},
		{"password", "default login u password %"},
		{"token", "ENV API_TOKEN %"},
		{"token", "setenv API_TOKEN %"},
		{"token", "set TOKEN %"},
		{"token", "set -gx API_TOKEN \"%\""},
		{"token", "export API\u200b_TOKEN=%"},
		{"token", "API_TOKEN\u200b=%"},
		{"token", "API_TOKEN=\ufeff%"},
		{"token", "API_TOKEN\u00a0=\u00a0%"},
		{"token", "API_TOKEN:\u202f%"},
	} {
		r := &redact.Redactor{}
		got, n := r.String(fill(c.text, drawn))
		require.Equal(t, fill(c.text, "[redacted:"+c.kind+"]"), got)
		require.Equal(t, 1, n)
		again, n := r.String(got)
		require.Equal(t, got, again)
		require.Zero(t, n)
	}
	// An unfinished control string hides nothing.
	got, _ := (&redact.Redactor{}).String("\x1b]0;password=" + drawn + "\n")
	require.NotContains(t, got, drawn)
	out, n, err := (&redact.Redactor{}).JSON([]byte(`{"password":"\u001b]8;;h\u0007hunter2\u001b]8;;\u0007"}`))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NotContains(t, string(out), "hunter2")
}

func TestFormsStay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"ENV PATH /usr/bin:$PATH", "set the token a1b2c3d4e5f6g7", "set token string", "ENV API_TOKEN $X", "setenv EDITOR vi",
		"the machine has a login page, where a password belongs", "machine h login u password <password>",
		"curl -b cookies.txt -c cookies.txt", "ls -b sid=" + drawn, "Cookie: lang=en more", "cookie: useThing=isProduction when set",
		"a\u00a0password\u00a0belongs here", "caf\u00e9 \u2013 na\u00efve \u200b", "\x1b]0;title\a \x1b]8;;https://x/\x1b\\link\x1b]8;;\x1b\\",
		`C:\e\x1b]x`, "Set-Cookie: Expires=Wed, 21 Oct 2015 07:28:00 GMT", "x -- y - z -", "-",
	} {
		got, n := (&redact.Redactor{}).String(text)
		require.Equal(t, text, got)
		require.Zero(t, n)
	}
}
