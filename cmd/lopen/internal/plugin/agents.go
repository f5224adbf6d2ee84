package plugin

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// gateTimeout is how long the agents let the hook of a turn's end run, in seconds: it may run a check.
const gateTimeout = 3600

// A hook is one command of a file of hooks, which Claude Code and Codex have in the same form.
type hook struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout,omitempty"`
}

type group struct {
	Hooks []hook `json:"hooks"`
}

// hooksOf is a file of hooks that runs a command at each of some events, with a line for each.
func hooksOf(command string, events ...string) []byte {
	b := []byte("{\n  \"hooks\": {")
	for i, e := range events {
		one := hook{Type: "command", Command: command}
		if e == "Stop" {
			one.Timeout = gateTimeout
		}
		line, err := strictjson.MarshalShown([]group{{[]hook{one}}})
		if err != nil {
			panic(err) // it has strings and a number
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "\n    %q: %s", e, line)
	}
	return append(b, "\n  }\n}\n"...)
}

// quoted is a word for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Claude returns the plugin for Claude Code. base is its folder, ~/.claude as a rule, and exe the
// path of lopen. A command whose exit code is 2 would block the prompt or the end of the turn; a
// program that the system cannot give memory or threads ends like that.
//
// Claude Code drops all hooks of a file that has an event which it does not know. So newer ones
// have a file of their own.
func Claude(base, exe, version string) *Set {
	command := quoted(filepath.ToSlash(exe)) + " hook claude || exit 1"
	return &Set{Base: base, Dir: "skills/lopen", Files: []File{
		{"hooks/hooks.json", hooksOf(command, "SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")},
		{"hooks/failure.json", hooksOf(command, "StopFailure")},
		{"SKILL.md", []byte(Skill)},
		{".claude-plugin/plugin.json", pluginOf(version)},
	}}
}

// pluginOf is what says to Claude Code that the folder is a plugin.
func pluginOf(version string) []byte {
	data, err := strictjson.MarshalLines(struct {
		Name        string            `json:"name"`
		Version     string            `json:"version"`
		Description string            `json:"description"`
		Author      map[string]string `json:"author"`
		Hooks       string            `json:"hooks"`
	}{"lopen", version, "Keeps the files before and after each prompt, in projects with a .lopen.", map[string]string{"name": "lopen"}, "./hooks/failure.json"})
	if err != nil {
		panic(err) // it has strings
	}
	return append(data, '\n')
}

// codexEvents are those of Codex that say where a turn begins and ends. It has none for an error.
var codexEvents = []string{"SessionStart", "UserPromptSubmit", "Stop", "Interrupt", "SessionEnd"}

// codexCommand is for the user's own shell, which Codex runs hooks with: sh makes of exit code 2
// another one. At Stop, Codex would go on with the turn for as long as the code is 2.
func codexCommand(exe string) string { return codexCall + quoted(filepath.ToSlash(exe)) }

// codexCall begins each such command, wherever lopen is.
const codexCall = `sh -c '"$0" hook codex || exit 1' `

// Codex returns the hooks for Codex. base is its folder, ~/.codex as a rule, and exe the path of lopen.
func Codex(base, exe string) *Set {
	return &Set{Base: base, Dir: ".", Files: []File{{CodexHooks, hooksOf(codexCommand(exe), codexEvents...)}}}
}

// CodexHooks is the name of the file that has hooks of Codex.
const CodexHooks = "hooks.json"

// CodexLacks returns what hooks.json of Codex lacks of our hooks, as JSON; nil if nothing. data is
// what the file holds.
func CodexLacks(data []byte, exe string) []byte {
	has := eventsWith(data, func(command string) bool { return command == codexCommand(exe) })
	lacks := slices.DeleteFunc(slices.Clone(codexEvents), func(e string) bool { return slices.Contains(has, e) })
	if len(lacks) == 0 {
		return nil
	}
	return hooksOf(codexCommand(exe), lacks...)
}

// CodexCalls returns the events of which hooks.json of Codex still calls lopen. data is what the file holds.
func CodexCalls(data []byte) []string {
	return eventsWith(data, func(command string) bool { return strings.HasPrefix(command, codexCall) })
}

// eventsWith returns the events of which hooks.json has a command.
func eventsWith(data []byte, which func(command string) bool) (events []string) {
	var is struct {
		Hooks map[string][]group `json:"hooks"`
	}
	_ = strictjson.UnmarshalForeign(data, &is) // what cannot be read has none
	for _, event := range codexEvents {
		if slices.ContainsFunc(is.Hooks[event], func(g group) bool {
			return slices.ContainsFunc(g.Hooks, func(h hook) bool { return which(h.Command) })
		}) {
			events = append(events, event)
		}
	}
	return events
}
