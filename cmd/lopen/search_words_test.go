package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Words that begin with a dash are words, wherever they stand; flags and their values stay flags.
func TestDashedWords(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"search auth -login":                   "search auth -- -login",
		"search -login auth --json":            "search auth --json -- -login",
		"search -数据 auth -help -h":             "search auth -h -- -数据 -help",
		"search auth -l --file -x --limit 3":   "search auth --file -x --limit 3 -- -l",
		"search auth --file=-x -Cache -1":      "search auth --file=-x -- -Cache -1",
		"-C search search auth -C -d -C/d -no": "-C search search auth -C -d -C/d -- -no",
		"search auth -login -- -more --json":   "search auth -- -login -more --json",
		"search -- -more":                      "search -- -more",
		"search auth --all --unknown":          "search auth --all --unknown",
		"search --log-level debug -x y":        "search --log-level debug y -- -x",
		"session show -login":                  "session show -login",
		"-C":                                   "-C",
	} {
		require.Equal(t, strings.Fields(want), dashedWords(newRoot(&app{}), strings.Fields(args)), args)
	}
}
