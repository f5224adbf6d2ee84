package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a lock says of who holds it names what the command is about, and no URL.
func TestInvocation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"session", "show", "auth"}, "lopen session show auth"},
		{[]string{"fleet", "join", "postgres://ci:Secret@db/lopen"}, "lopen fleet join"},
		{[]string{"fleet", "status"}, "lopen fleet status"},
		{nil, "lopen"},
	} {
		cmd, args, err := newRoot(&app{}).Find(c.words)
		require.NoError(t, err)
		require.Equal(t, c.want, invocation(cmd, args))
	}
}
