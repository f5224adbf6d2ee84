package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/redact"
)

// marks are what tools show before each line of a text.
var marks = []struct {
	name string
	of   func(n int, line string) string
}{
	{"cat -n", func(n int, line string) string { return fmt.Sprintf("%6d\t%s", n, line) }},
	{"an agent's reader", func(n int, line string) string { return fmt.Sprintf("%6d→%s", n, line) }},
	{"bat", func(n int, line string) string { return fmt.Sprintf("%4d │ %s", n, line) }},
	{"grep -n", func(n int, line string) string { return fmt.Sprintf("%d:%s", n, line) }},
	{"grep -n of files", func(n int, line string) string { return fmt.Sprintf("etc/app.conf:%d:%s", n, line) }},
	{"grep of files", func(_ int, line string) string { return "etc/app.conf:" + line }},
	{"grep -C", func(n int, line string) string { return fmt.Sprintf("app.conf-%d-%s", n, line) }},
	{"diff, added", func(_ int, line string) string { return "+" + line }},
	{"diff, removed", func(_ int, line string) string { return "-" + line }},
	{"diff, the same", func(_ int, line string) string { return " " + line }},
	{"diff in a reader", func(n int, line string) string { return fmt.Sprintf("%6d→+%s", n, line) }},
	{"mail", func(_ int, line string) string { return "> " + line }},
	{"mail, answered", func(_ int, line string) string { return ">> " + line }},
}

// marked puts a mark before each line of a text. Numbers get longer on the way.
func marked(text string, mark func(int, string) string) string {
	var b strings.Builder
	n := 8
	for line := range strings.Lines(text) {
		b.WriteString(mark(n, line))
		n++
	}
	return b.String()
}

// TestFormsBehindMarks gives each form as tools show it, whole and line by line.
func TestFormsBehindMarks(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	for _, m := range marks {
		for _, c := range people {
			if m.name == "grep -C" && c.kind == "cookie" {
				continue // its name is a whole one, and a part of the file's here
			}
			text := marked("what was just before\n"+strings.Replace(c.text, "§", c.secret, 1)+"\nafter\n", m.of)
			got, n := r.String(text)
			piecewise := byLine(r, text)
			for secret := range strings.Lines(c.secret) {
				secret = strings.TrimSpace(secret)
				if secret != "" && strings.Contains(got, secret) || n != 1 || got != piecewise {
					t.Errorf("%s, %s: %d:\n%q\n%q", c.name, m.name, n, got, piecewise)
					break
				}
			}
			for _, word := range strings.Fields(strings.Replace(c.text, "§", " ", 1)) {
				require.Contains(t, got, word, c.name)
			}
			again, n := r.String(got)
			require.Equal(t, got, again)
			require.Zero(t, n)
		}
	}
}

// byLine is what is left of a text that comes line by line.
func byLine(r *redact.Redactor, text string) string {
	var out, held string
	for line := range strings.Lines(text) {
		held += line
		n := len(held)
		if open := redact.Open([]byte(held)); open >= 0 {
			n = open
		}
		got, _ := r.String(held[:n])
		out, held = out+got, held[n:]
	}
	got, _ := r.String(held)
	return out + got
}

func TestStaysBehindMarks(t *testing.T) {
	t.Parallel()
	r := &redact.Redactor{}
	for _, m := range marks {
		for _, text := range stays {
			if strings.Contains(text, "\x00") {
				continue
			}
			text = marked("what was just before\n"+text+"\nafter\n", m.of)
			got, n := r.String(text)
			require.Equal(t, text, got, m.name)
			require.Zero(t, n)
		}
	}
}
