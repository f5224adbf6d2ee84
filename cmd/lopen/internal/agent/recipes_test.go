package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

func TestRecipes(t *testing.T) {
	t.Parallel()
	all, err := Recipes([]byte(`{
		"aider": {"start": ["aider", "--yes-always", "--no-auto-commits", "--no-dirty-commits", "--message-file"], "prompt": "file"},
		"gemini": {"start": ["gemini", "-p"], "prompt": "argument", "events": "text", "login": "gemini"},
		"claude": {"start": ["my-claude"], "events": "claude", "resume": ["--again={session}"], "open": ["my-claude", "{session}"], "ready": ["true"]}
	}`))
	require.NoError(t, err)
	require.Len(t, all, 3)

	a, _, err := Choose("gemini", nil, all, "go test")
	require.NoError(t, err)
	require.False(t, a.Stdin())
	require.Equal(t, []string{"gemini", "-p", "do it"}, a.Launch(Launch{Prompt: "do it", Session: anID}))

	a, _, err = Choose("claude", nil, all, "go test")
	require.NoError(t, err)
	require.True(t, a.Knows())
	require.Empty(t, a.Added())
	require.Empty(t, a.NewSession())
	require.Equal(t, []string{"my-claude", "--again=" + anID}, a.Launch(Launch{Session: anID, Budget: 1}))
	require.Equal(t, []string{"my-claude"}, a.Launch(Launch{Session: anID, New: true}))
	require.Equal(t, []string{"my-claude", anID}, a.Open(anID))
	require.Equal(t, []string{"true"}, a.Ready())

	a, _, err = Choose("", []string{"/usr/bin/aider", "x"}, all, "")
	require.NoError(t, err)
	require.Equal(t, "aider", a.Name())
	require.Equal(t, []string{"/usr/bin/aider", "x"}, a.Launch(Launch{}))
	start, err := Start("aider", all)
	require.NoError(t, err)
	require.Equal(t, "aider", start[0])
	for _, empty := range []string{"", "{}", "null"} {
		all, err = Recipes([]byte(empty))
		require.NoError(t, err)
		require.Empty(t, all)
	}
}

// The recipes that README has are taken.
func TestRecipesOfReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "README.md"))
	require.NoError(t, err)
	i := strings.Index(string(text), `{"agents": {`)
	require.Positive(t, i)
	var config struct {
		Agents strictjson.Value `json:"agents"`
	}
	require.NoError(t, json.NewDecoder(strings.NewReader(string(text)[i:])).Decode(&config))
	all, err := Recipes(config.Agents)
	require.NoError(t, err)
	require.Contains(t, all, "gemini")
	require.Contains(t, all["aider"].Start[2], "--no-auto-commits --no-dirty-commits")
}

func TestRecipesRefused(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		`[]`:                              "no object of recipes",
		`{"none": {"start": ["x"]}}`:      `"none" is no name`,
		`{"A b": {"start": ["x"]}}`:       `"A b" is no name`,
		`{"a": 1}`:                        "a: give an object",
		`{"a": null}`:                     "a: give an object",
		`{"a": {}}`:                       "a: start is missing",
		`{"a": {"start": "x"}}`:           "a: start: give a list",
		`{"a": {"start": []}}`:            "a: start: give a list",
		`{"a": {"start": [""]}}`:          "a: start: give a list",
		`{"a": {"start": ["{session}"]}}`: "a: start: {session} has no meaning here",
		`{"a": {"start": ["x"], "resume": ["--go"]}}`:                    "a: resume: {session} must stand in it once",
		`{"a": {"start": ["x"], "resume": ["{session}", "{session}"]}}`:  "a: resume: {session} must stand in it once",
		`{"a": {"start": ["x"], "prompt": "pipe"}}`:                      "a: prompt: give one of stdin, argument, file",
		`{"a": {"start": ["x"], "events": "aider"}}`:                     "a: events: give one of claude, codex, opencode, text",
		`{"a": {"start": ["x"], "Start": ["y"]}}`:                        "a: Start: there is no such field",
		`{"a": {"start": ["x"], "login": "a\nb"}}`:                       "a: login: give one line",
		`{"a": {"start": ["x\u0000"]}}`:                                  "without NUL",
		`{"a": {"start": ["` + strings.Repeat("x", maxArg+1) + `"]}}`:    "at most 4096 bytes",
		`{"a": {"start": [` + strings.Repeat(`"x",`, maxArgs) + `"x"]}}`: "give a list of 1 to 100",
	} {
		_, err := Recipes([]byte(object))
		require.ErrorContains(t, err, want, object)
	}
	many := "{"
	for i := range maxRecipes + 1 {
		many += `"a` + strings.Repeat("b", i) + `": {"start": ["x"]},`
	}
	_, err := Recipes([]byte(strings.TrimSuffix(many, ",") + "}"))
	require.ErrorContains(t, err, "more than 50")
}
