package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// claude is the profile of Claude Code, as of 2.1. Its print mode refuses to edit files
// and to run commands that no flag or setting allows.
func claude() Profile {
	return Profile{
		Name:   "claude",
		Start:  []string{"claude", "-p", "--permission-mode", "acceptEdits"},
		Events: "claude",
		Resume: []string{"--resume", placeholder},
		Open:   []string{"claude", "--resume", placeholder},
		Ready:  []string{"claude", "auth", "status"},
		Login:  "claude auth login",
		built:  &built{choose: (*Agent).chooseClaude, launch: (*Agent).launchClaude},
	}
}

var claudeValues = map[string]rune{
	"--add-dir": many, "--agent": one, "--agents": one, "--allowedTools": many, "--append-system-prompt": one, "--append-system-prompt-file": one,
	"--betas": many, "--debug": opt, "--debug-file": one, "--disallowedTools": many, "--effort": one, "--fallback-model": one, "--file": many,
	"--from-pr": opt, "--input-format": one, "--json-schema": one, "--max-budget-usd": one, "--max-turns": one, "--mcp-config": many,
	"--model": one, "--name": one, "--output-format": one, "--permission-mode": one, "--permission-prompt-tool": one, "--plugin-dir": one,
	"--plugin-url": one, "--prompt-suggestions": opt, "--remote-control": opt, "--remote-control-session-name-prefix": one, "--resume": opt,
	"--session-id": one, "--setting-sources": one, "--settings": one, "--system-prompt": one, "--system-prompt-file": one, "--tools": many,
	"--worktree": opt,
}

var claudeAliases = map[string]string{
	"-p": "--print", "-c": "--continue", "-r": "--resume", "-d": "--debug", "-n": "--name", "-w": "--worktree",
	"--allowed-tools": "--allowedTools", "--disallowed-tools": "--disallowedTools",
}

func (a *Agent) chooseClaude(check string) string {
	t := readFlags(a.argv, max(a.program+1, 1), claudeValues, claudeAliases)
	var needs, notes []string
	if !t.has("--print") {
		needs = append(needs, "-p")
	}
	switch format := t.last("--output-format"); {
	case !t.has("--output-format"):
		needs = append(needs, "--output-format", "stream-json")
	case format != "stream-json":
		a.profile.Events = "text"
		notes = append(notes, fmt.Sprintf("with --output-format %s claude's events are not known: its exit code and its last line decide", format))
	}
	if a.Knows() && !t.has("--verbose") {
		needs = append(needs, "--verbose")
	}
	if a.Knows() && !t.has("--include-partial-messages") { // else a long answer has no event
		needs = append(needs, "--include-partial-messages")
	}
	if !t.has("--permission-mode", "--allowedTools", "--settings", "--dangerously-skip-permissions") {
		notes = append(notes, "claude -p edits no file unless its settings allow it: --permission-mode acceptEdits does")
	}
	rule, note := claudeGrant(t, check)
	if rule != "" {
		needs = append(needs, "--allowedTools="+rule) // not variadic with a =
	}
	if note != "" {
		notes = append(notes, note)
	}
	a.add(0, needs...)
	a.own = t.has("--resume", "--continue", "--session-id", "--from-pr", "--fork-session", "--no-session-persistence")
	a.capped = t.has("--max-budget-usd")
	return strings.Join(notes, "; ")
}

func (a *Agent) launchClaude(line []string, l Launch) []string {
	var args []string
	switch {
	case l.Session == "":
	case l.New:
		args = append(args, "--session-id", l.Session)
	default:
		args = append(args, "--resume", l.Session)
	}
	if l.Budget > 0 && !a.capped {
		args = append(args, "--max-budget-usd", strconv.FormatFloat(max(l.Budget, 0.0001), 'f', 4, 64))
	}
	b := &Agent{line: line, program: a.program}
	b.add(0, args...)
	return b.line
}

// claudeGrant returns the rule that lets the agent run the check and nothing else, "" when
// it is not simple, is granted or refused by what was typed, or there is none. note says
// what to type for one that is not simple.
func claudeGrant(t typed, check string) (rule, note string) {
	check = strings.TrimSpace(check)
	if check == "" || t.has("--dangerously-skip-permissions") || t.last("--permission-mode") == "bypassPermissions" ||
		covered(t.values("--allowedTools"), check) || covered(t.values("--disallowedTools"), check) {
		return "", ""
	}
	if simple(check) {
		return bashRule(check), ""
	}
	parts := strings.FieldsFunc(check, func(r rune) bool { return strings.ContainsRune("&|;\n", r) })
	for i, p := range parts {
		if parts[i] = strings.TrimSpace(p); !simple(parts[i]) {
			return "", fmt.Sprintf("claude may not run the check %s itself, as it is more than one plain command: "+
				"put it into a script and name that as the check", quote(check))
		}
		parts[i] = quote(bashRule(parts[i]))
	}
	return "", fmt.Sprintf("claude may not run the check %s itself, as it is more than one plain command: --allowedTools %s lets it",
		quote(check), strings.Join(parts, " "))
}

func bashRule(command string) string { return "Bash(" + command + ")" }

// simple says that a command is words, each of which means itself to the shell and to the
// agent's rules, and that the first one is a program.
func simple(command string) bool {
	words := strings.Split(command, " ")
	if len(command) > 1000 || strings.Contains(words[0], "=") || slices.Contains(reserved, words[0]) {
		return false
	}
	return !slices.ContainsFunc(words, func(w string) bool {
		return w == "" || strings.ContainsFunc(w, func(r rune) bool { return !plainRune(r) })
	})
}

// reserved are words that are no program in the place of one.
var reserved = strings.Fields("if then elif else fi for in do done while until case esac select function time coproc exec eval source . : export set unset alias cd")

// covered says whether one of the rules, which are lists themselves, is about a command.
func covered(lists []string, command string) bool {
	for _, list := range lists {
		for _, rule := range splitRules(list) {
			body, ok := strings.CutPrefix(rule, "Bash")
			if !ok {
				continue
			}
			if body == "" || body == "(*)" || body == "(:*)" || body == "("+command+")" {
				return true
			}
			for _, end := range []string{":*)", " *)"} {
				prefix, ok := strings.CutSuffix(strings.TrimPrefix(body, "("), end)
				if ok && !strings.Contains(prefix, "*") && (command == prefix || strings.HasPrefix(command, prefix+" ")) {
					return true
				}
			}
		}
	}
	return false
}

// splitRules splits a list of rules at commas and spaces outside parentheses.
func splitRules(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && (r == ',' || r == ' ')
	})
}
