package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer/envelope"
)

// evil steers a terminal in each way there is, and hides what it does. Where it is Markdown it loads an image and is a
// link, and where a shell is given it without quotes it runs PWNED.
const evil = "$(PWNED)'$(PWNED)`PWNED`;PWNED![a](http://x.example/p.png)<img src=x>\x1b]0;title\x07\x1b]52;c;eA==\x1b\\\x1b[?1049h\x1b[2J\x1b[8m\x1b[31m\x08\u009b2J\u0085\u202etxt\u2066\u200b\u3164\x7f"

// forged begins a line that lopen did not write.
const forged = "\nFORGED"

// hostileFile is a file of the project.
var hostileFile = "f" + strings.ReplaceAll(evil, "/", "") + forged

// A hostileCase is one way to call a command.
type hostileCase struct {
	args    []string
	content bool // prints what was asked for byte for byte into a pipe, or what has lines of its own
}

// hostileCases calls each command. The key is its path; one that is not here fails the
// test.
var hostileCases = map[string][]hostileCase{
	"lopen":                       {{}},
	"lopen assess":                {{[]string{"lint", "--", "sh", "agent.sh"}, true}},
	"lopen backup":                {{args: []string{"../out" + strings.ReplaceAll(evil, "/", "")}}, {args: []string{"in" + evil}}, {args: []string{"bak"}}},
	"lopen backup list":           {{args: []string{"bak"}}, {args: []string{evil}}, {args: []string{"docs"}}},
	"lopen backup prune":          {{args: []string{"bak"}}, {args: []string{"bak", "--dry-run"}}},
	"lopen backup restore":        {{args: []string{"bak"}}, {args: []string{"spoilt"}}, {args: []string{"bak", "--to", "new" + strings.ReplaceAll(evil, "/", "")}}, {args: []string{"bak", evil}}},
	"lopen backup verify":         {{args: []string{"bak"}}, {args: []string{"spoilt"}}, {args: []string{"bak", evil}}},
	"lopen cache clear":           {{}},
	"lopen cache status":          {{}},
	"lopen cache warm":            {{}, {args: []string{"no" + evil}}},
	"lopen checkpoint cat":        {{[]string{"last", hostileFile}, true}, {args: []string{"last", "no" + evil}}, {[]string{"last", "link"}, true}},
	"lopen checkpoint create":     {{}, {args: []string{"no" + evil}}},
	"lopen checkpoint diff":       {{[]string{"before:task-one"}, true}, {args: []string{"before:task-one", "--name-only"}}, {args: []string{"before:task-one", "--stat"}}, {args: []string{"x" + evil}}},
	"lopen checkpoint list":       {{}},
	"lopen checkpoint pin":        {{args: []string{"last"}}, {args: []string{"x" + evil}}},
	"lopen checkpoint restore":    {{args: []string{"before:task-one", hostileFile, "--dry-run"}}, {[]string{"before:task-one", "file.txt", "--diff"}, true}, {args: []string{"before:task-one", "no" + evil, "--yes"}}},
	"lopen checkpoint rewind":     {{args: []string{"before:task-one", "--dry-run"}}, {[]string{"before:task-one", "--dry-run", "--diff"}, true}, {args: []string{"before:task-one", "--yes"}}, {args: []string{"before:task-one", "--yes", "--contested"}}},
	"lopen checkpoint show":       {{args: []string{"before:task-one"}}, {args: []string{"last", hostileFile}}, {args: []string{"last", "no" + evil}}, {args: []string{"x" + evil}}},
	"lopen checkpoint unpin":      {{args: []string{"last"}}, {args: []string{evil}}},
	"lopen config set":            {{args: []string{"check", evil}}, {args: []string{evil, "x"}}, {args: []string{"unit", evil}}},
	"lopen trust list":            {{}},
	"lopen trust revoke":          {{}, {args: []string{evil + forged}}},
	"lopen config show":           {{}},
	"lopen doctor":                {{}},
	"lopen files changed":         {{}},
	"lopen files record":          {{}},
	"lopen plugin claude install": {{}, {args: []string{"--yes"}}},
	"lopen plugin claude remove":  {{}},
	"lopen plugin codex install":  {{}, {args: []string{"--yes"}}},
	"lopen plugin codex remove":   {{}},
	"lopen hook":                  {{args: []string{"claude"}}, {args: []string{evil}}},
	"lopen mcp":                   {{}, {args: []string{evil}}},
	"lopen fleet doctor":          {{}},
	"lopen fleet join":            {{args: []string{"postgres://127.0.0.1:1/x" + strings.ReplaceAll(evil, "/", ""), "--yes", "--project", "p" + evil}}, {args: []string{evil}}},
	"lopen fleet leave":           {{}},
	"lopen fleet sql":             {{}, {args: []string{"--roles"}}},
	"lopen fleet status":          {{}},
	"lopen init":                  {{}, {args: []string{"x" + evil}}},
	"lopen plan add":              {{args: []string{"m", "new" + evil}}, {args: []string{"m", evil + forged}}},
	"lopen plan create":           {{args: []string{"n", "--from", "TODO.md"}}, {args: []string{"n", "--from", "blocked.md"}}, {args: []string{"p", "--from", "prd.json"}}, {args: []string{"q", "--from", "issues.json"}}, {args: []string{"n", "--from", evil}}},
	"lopen plan list":             {{}},
	"lopen plan mark":             {{args: []string{"m", "task-two", "failed"}}, {args: []string{"m", "task-two", evil}}},
	"lopen plan move":             {{args: []string{"m", "task-two"}}, {args: []string{"m", evil}}},
	"lopen plan push":             {{args: []string{"m"}}, {args: []string{evil}}},
	"lopen plan remove":           {{args: []string{"m", "task-two"}}},
	"lopen plan rename":           {{args: []string{"m", "task-two", "other" + evil}}},
	"lopen plan revive":           {{args: []string{"m", "task-two"}}, {args: []string{"m", evil}}},
	"lopen plan skip":             {{args: []string{"m", "task-two"}}, {args: []string{"m", evil}}},
	"lopen plan show":             {{args: []string{"m"}}},
	"lopen plan tick":             {{args: []string{"m", "task-two"}}},
	"lopen plan untick":           {{args: []string{"m", "task-one"}}},
	"lopen plan update":           {{args: []string{"m", "--dry-run"}}, {args: []string{"m"}}, {args: []string{evil}}},
	"lopen report":                {{args: []string{"m"}}, {args: []string{"--since", "2d"}}, {args: []string{"--since", evil}}, {args: []string{evil}}},
	"lopen prompt":                {{}},
	"lopen skill":                 {{}},
	"lopen research list":         {{args: []string{"m"}}},
	"lopen research new":          {{args: []string{"m", "other" + evil}}, {args: []string{"m", "x", "--section", evil}}},
	"lopen run": {{args: []string{"m"}}, {[]string{"m", "--dry-run"}, true}, {[]string{"m", "--no-resume", "--check", "true #" + evil, "--", "sh", "agent.sh", evil}, true},
		{args: []string{"m", "no" + evil}}, {args: []string{"m", "--", "no" + evil}}, {args: []string{"m", "--task", evil}}, {args: []string{"m", "--from", evil}}, {args: []string{"m", "--task", "task-one", "--again", "--dry-run", "--prompt", "none"}}, {args: []string{"m", "--prompt", evil}}, {args: []string{evil}}, {args: []string{"--" + evil}}, {args: []string{"held", "--", "true"}}},
	"lopen search":          {{args: []string{"e*"}}, {args: []string{"e*", "--no-index"}}, {args: []string{"--file", hostileFile}}, {args: []string{evil}}, {args: []string{"e*", "--all"}}},
	"lopen section drift":   {{args: []string{"m"}}},
	"lopen section list":    {{args: []string{"docs/requirements/m/SPECIFICATION.md"}}, {args: []string{evil}}},
	"lopen section show":    {{[]string{"docs/requirements/m/SPECIFICATION.md", "#tokens"}, true}, {args: []string{"docs/requirements/m/SPECIFICATION.md", evil}}},
	"lopen session delete":  {{args: []string{"m", "--yes"}}, {args: []string{evil}}},
	"lopen session export":  {{args: []string{"m"}}, {args: []string{"--all", "-o", "out" + evil}}, {args: []string{"edited"}}, {args: []string{"broken"}}, {args: []string{evil}}, {args: []string{"m", "-o", "no" + evil + "/x"}}},
	"lopen session fork":    {{args: []string{"m"}}},
	"lopen session import":  {{args: []string{"bundle"}}, {args: []string{"--from", "claude", "hist/two"}}, {args: []string{"--from", "codex", "hist"}}, {args: []string{"--from", evil, evil}}, {args: []string{"../bundle", "-C", "inner"}}, {args: []string{evil}}, {args: []string{"TODO.md"}}},
	"lopen bundle verify":   {{args: []string{"bundle"}}, {args: []string{evil}}, {args: []string{"TODO.md"}}},
	"lopen session list":    {{}, {args: []string{"--long", "--tree"}}, {args: []string{"--status", evil}}},
	"lopen session log":     {{args: []string{"m"}}, {args: []string{"m", "--task", "task-one"}}, {args: []string{"m", "--task", evil}}},
	"lopen session output":  {{[]string{}, true}, {[]string{"task-one"}, true}, {[]string{"--raw", "--session", "m"}, true}, {[]string{"--prompt", "--session", "m"}, true}, {args: []string{evil}}, {args: []string{"--session", evil}}},
	"lopen session pause":   {{args: []string{"m"}}, {args: []string{"held"}}},
	"lopen session pin":     {{args: []string{"m"}}},
	"lopen session prune":   {{}},
	"lopen session pull":    {{args: []string{evil}}},
	"lopen session push":    {{args: []string{"m"}}, {args: []string{evil}}},
	"lopen session recover": {{args: []string{"edited", "--dry-run"}}, {args: []string{"edited", "--accept-edit"}}, {args: []string{"broken", "--dry-run"}}},
	"lopen session rename":  {{args: []string{"m", evil}}},
	"lopen session restore": {{}, {args: []string{evil}}},
	"lopen session resume":  {{args: []string{"m"}}, {args: []string{"broken"}}},
	"lopen session show":    {{args: []string{"m"}}, {args: []string{"edited"}}, {args: []string{"held"}}, {[]string{"claude-one", "--messages"}, true}, {[]string{"claude-one", "--full"}, true}, {args: []string{"m", "--format", "md"}}, {args: []string{"m", "--format", "json"}}, {args: []string{"m", "--format", "yaml"}}, {args: []string{evil}}, {args: []string{"m", "--jq", evil}}, {args: []string{"m", "--template", "{{" + evil}}},
	"lopen session unpin":   {{args: []string{"m"}}},
	"lopen session verify":  {{}, {args: []string{"--read-data"}}, {args: []string{"m"}}},
	"lopen session watch":   {{args: []string{evil}}},
	"lopen worktree list":   {{}},
	"lopen worktree remove": {{args: []string{"m"}}, {args: []string{evil}}},
	"lopen undo":            {{args: []string{"--dry-run"}}},
	"lopen work":            {{args: []string{"--dry-run"}}, {args: []string{evil}}, {args: []string{"m", "held", "--jobs", "2", "--check", "true #" + evil, "--", "sh", "agent.sh", evil}, content: true}},
	"lopen version":         {{}},

	"lopen transaction commit":   {{args: []string{"m"}}, {args: []string{"m", "--remake"}}, {args: []string{evil}}, {args: []string{"evil"}}},
	"lopen transaction log":      {{args: []string{"m"}}, {args: []string{"m", "--json"}}, {args: []string{evil}}, {args: []string{"evil"}}},
	"lopen transaction rollback": {{args: []string{"m", "--dry-run"}}, {args: []string{"m", "--yes"}}, {args: []string{"evil", "--yes"}}},
	"lopen transaction status":   {{args: []string{"m"}}, {args: []string{"evil"}}, {args: []string{"evil", "--json"}}},
}

// TestNothingSteersTheTerminal calls every command in a project in which everything that
// can be named is named so that it steers a terminal: on a terminal, and into a pipe. Without
// -hostile it is one case of each command that goes into a pipe.
func TestNothingSteersTheTerminal(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	project, root := hostileProject(t), t.TempDir()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		path := cmd.CommandPath()
		if cmd.HasSubCommands() && path != "lopen" && path != "lopen backup" {
			return
		}
		require.True(t, hostileCases[path] != nil, "%s has no case", path)
		json := cmd.Flags().Lookup("json") != nil // cobra makes the set of flags in this call
		for i, c := range hostileCases[path] {
			t.Run(strings.ReplaceAll(path, " ", "-")+"/"+strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				words := append(strings.Fields(path)[1:], c.args...)
				if (path == "lopen run" || path == "lopen work") && len(c.args) > 1 { // flags end at --
					words = append([]string{"--log-level", "debug"}, words...)
				} else {
					words = append(words, "--log-level", "debug")
				}
				if path == "lopen assess" {
					words = append([]string{"--log-level", "debug"}, words[:len(words)-2]...)
				}
				dir := hostileCopy(t, root, project)
				out := onTerminal(t, dir, words...)
				requireHarmless(t, out)
				requireNoForgedLine(t, out, c.content)
				requireQuoted(t, out)
				if i > 0 && !*allHostile {
					return
				}
				out = intoPipe(t, dir, append([]string{"--log-format", "json"}, words...)...)
				if !c.content {
					requireHarmless(t, out)
					require.NotContains(t, out, "\x1b")
					requireNoForgedLine(t, out, false)
				}
				if json {
					out = intoPipe(t, dir, append(words, "--json")...)
					requireHarmless(t, out)
					require.NotContains(t, out, "\x1b")
					requireHarmless(t, onTerminal(t, dir, append(words, "--template", "{{.}}")...))
				}
			})
		}
	}
	walk(newRoot(&app{}))
}

func requireNoForgedLine(t *testing.T, out string, content bool) {
	t.Helper()
	if !content {
		require.NotContains(t, out, forged)
	}
}

var sgrSequence = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// requireHarmless requires that nothing in a text but colours is more than text to a
// terminal, and that no colour goes on beyond a line.
func requireHarmless(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if all := sgrSequence.FindAllString(line, -1); len(all) > 0 {
			require.Equal(t, "\x1b[0m", all[len(all)-1], "%q", line)
		}
		line = sgrSequence.ReplaceAllString(line, "")
		require.True(t, utf8.ValidString(line), "%q", line)
		require.False(t, strings.ContainsFunc(line, func(r rune) bool {
			return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
		}), "%q", line)
	}
}

// hostileHistory makes histories of agents, and takes one in.
func hostileHistory(t *testing.T, dir string, put func(name, text string)) {
	text := quoteJSON(t, evil+forged)
	line := `{"type":"user","uuid":` + text + `,"parentUuid":` + text + `,"timestamp":"2026-02-14T09:00:00Z","cwd":` + text + `,"message":{"content":` + text + `}}` + "\n" +
		`{"type":"assistant","uuid":"b","parentUuid":` + text + `,"message":{"model":` + text + `,"content":[{"type":"tool_use","id":"c","name":` + text + `,"input":{` + text + `:` + text + `}},{"type":` + text + `}]}}` + "\n" +
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":` + text + `}]}}` + "\n" +
		`{"type":` + text + `}` + "\n" + evil + "\n"
	odd := strings.ReplaceAll(evil, "/", "") + ".jsonl"
	put("hist/one/one.jsonl", line)
	put("hist/one/one/subagents/agent-"+odd, line)
	put("hist/two/"+odd, line)
	put("hist/two/agent-"+odd, "{}")
	put("hist/rollout-"+odd, line)
	must(t, dir, "session", "import", "--from", "claude", "hist/one")
}

// hostileProject makes the project: sessions that ran, that somebody holds, edited and
// broke, with everything foreign that a store can hold.
func hostileProject(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "pro"+strings.NewReplacer("\\", "", "/", "").Replace(evil)+"ject")
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	put("TODO.md", "- [ ] task one\n- [ ] task two\n- [ ] third "+evil+" `![b](http://x.example/b.png)` \xff\n- [ ]none"+evil+"\n\n## Part "+evil+"\n\n- [ ] last\n")
	put("prd.json", `[{"id":"a\u001b[2J\u202e\nFORGED","title":"b\u001b[2J\u202e\nFORGED","x\u001b[2J\u202e":"- [ ] c\u001b[2J","dependencies":["d\u001b[2J\u202e\nFORGED"]}]`)
	put("issues.json", `[{"number":1,"title":"b\u001b[2J\u202e\nFORGED","body":"- [-] c\u001b[2J\u202e\n- [ ] d\u001b[2J, blocked by #9","labels":["e\u001b[2J\u202e\nFORGED"]},{"number":2,"title":"\u001b[2J\u202e\nFORGED","state":"closed","stateReason":"not_planned"}]`)
	put("blocked.md", "- [ ] one <!-- after: no"+evil+" -->\n")
	put("docs/requirements/m/SPECIFICATION.md", "---\nname: \"a\\e[2J\\u202E\\nFORGED\"\n---\n# Spec "+evil+"\n\n## Tokens\n\n"+evil+" \xff text"+forged+"\n\n## Other "+evil+"\n\nx\n\n"+hostileCriteria("some words that stay "+evil, "gone"+evil))
	put("docs/requirements/m/RESEARCH-one.md", "---\ntopic: \"t\\e[2J\\u202E\\nFORGED\"\nspecification: SPECIFICATION.md\nsections:\n  - header: \"no\\e[2J\\nFORGED\"\n    sha256: 00\n---\n# x\n")
	put("docs/requirements/m/RESEARCH-two.md", "---\ntopic: ["+evil+"\n---\n# x\n")
	put(hostileFile, evil+forged+"\n")
	require.NoError(t, os.Symlink(evil, filepath.Join(dir, "link")))
	put("agent.sh", "printf '"+shellText(evil)+" \\rover\\n\\033[41mred\\n' | tee -a file.txt\nprintf '"+shellText(evil)+"' >&2\necho x >\"new$(date +%N)\"\n")
	put("fail.sh", "sh agent.sh; exit 1\n")
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	for _, m := range []string{"edited", "broken", "held"} {
		put("plain.md", "- [ ] one\n")
		must(t, dir, "plan", "create", m, "--from", "plain.md")
		_ = command(t, dir, "run", m, "--max-iterations", "1", "--", "false").Run()
	}
	must(t, dir, "files", "record")
	_ = command(t, dir, "run", "m", "--transaction", "--max-iterations", "1", "--transcript", "--check", "sh fail.sh # "+evil+forged, "--", "sh", "agent.sh", evil+forged).Run()
	hostileBranch(t, dir)
	put(".lopen/transactions/evil.json", string(envelope.Checksum.Append([]byte(`{"transaction":1,"id":"evil","session":`+quoteJSON(t, evil+forged)+`,"state":`+quoteJSON(t, evil+forged)+
		`,"origin":`+quoteJSON(t, evil+forged)+`,"commit":`+quoteJSON(t, evil+forged)))))
	put(".lopen/config.json", `{"check": `+quoteJSON(t, "true # "+evil+forged)+`}`)
	put("later"+strings.ReplaceAll(evil, "/", "")+forged, evil)

	of := func(module string) string { return sessionFolder(t, dir, module) }
	for _, m := range []string{"m", "edited", "held"} {
		object := `{"schemaVersion":1,"name":` + quoteJSON(t, "name"+evil+forged)
		put(of(m)+"/meta.json", string(envelope.Checksum.Append([]byte(object))))
	}
	put(of("held")+"/.lock", hostileOwner(t))
	put(".lopen/modules/held/.lock", hostileOwner(t))
	state, err := os.ReadFile(filepath.Join(dir, of("edited"), "state.json"))
	require.NoError(t, err)
	edited := bytes.ReplaceAll(state, []byte(`"name":"one"`), []byte(`"name":`+quoteJSON(t, "one"+evil+forged)))
	require.NotEqual(t, state, edited)
	put(of("edited")+"/state.json", string(edited))
	put(of("broken")+"/state.json", `{"schemaVersion":1,"id":`+quoteJSON(t, evil+forged))
	put(of("broken")+"/left"+strings.ReplaceAll(evil, "/", "")+forged, evil)
	for _, name := range []string{"bak", "spoilt"} {
		_ = command(t, dir, "backup", "../"+name).Run() // what is broken is left out
		require.NoError(t, os.Rename(filepath.Join(dir, "..", name), filepath.Join(dir, name)))
		require.FileExists(t, filepath.Join(dir, name, "snapshots", "00000001.json"))
	}
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "spoilt", "objects")))
	must(t, dir, "session", "export", "m", "-o", filepath.Join(dir, "bundle"))
	spec, err := os.ReadFile(filepath.Join(dir, "docs/requirements/m/SPECIFICATION.md"))
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(spec), "## Acceptance")
	put("docs/requirements/m/SPECIFICATION.md", before+"## New "+evil+"\n\ntext\n\n"+hostileCriteria("some words that stay, reworded "+evil, "quite another"+evil))
	put(".lopen/modules/late/plan.md", "---\nafter: [\"no\\e[2J\\u202E\\nFORGED\"]\n---\n- [ ] one\n")
	hostileHistory(t, dir, put)
	require.NoError(t, os.Chmod(filepath.Join(dir, ".lopen"), 0o755)) // and doctor says what to type
	put("inner/.git/HEAD", "ref: refs/heads/main\n")                  // a project of its own, where nothing of it is known
	return dir
}

// shellText is a text for printf of a shell, between single quotes.
func shellText(s string) string { return strings.NewReplacer(`\`, `\\`, "'", `'\''`).Replace(s) }

// hostileCriteria is the end of a specification.
func hostileCriteria(all ...string) string {
	text := "## Acceptance Criteria\n\n"
	for _, c := range all {
		text += "- [ ] " + c + "\n  details" + forged + "\n"
	}
	return text
}

// hostileBranch commits to the branch of the transaction what lopen would not.
func hostileBranch(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		return
	}
	cmd := exec.Command("sh", "-c", `b=$(git for-each-ref --format='%(refname)' refs/heads/lopen) &&
		git update-ref "$b" "$(printf %s "$TEXT" | git -c user.name=a -c user.email=a@a commit-tree "$b^{tree}" -p "$b")"`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(dir, ".lopen", "sidecar.git"), "TEXT="+evil+forged+"\n\nLopen-Session: "+evil+"\nLopen-Transaction: "+evil+"\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// sessionFolder is the folder of a module's only session, in the project.
func sessionFolder(t *testing.T, dir, module string) string {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(dir, ".lopen", "sessions"))
	require.NoError(t, err)
	i := slices.IndexFunc(all, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), module+"-") })
	require.GreaterOrEqual(t, i, 0, module)
	return filepath.Join(".lopen", "sessions", all[i].Name())
}

func hostileOwner(t *testing.T) string {
	return `{"pid":` + strconv.Itoa(os.Getpid()) + `,"host":` + quoteJSON(t, evil+forged) + `,"command":` + quoteJSON(t, evil+forged) + `,"since":"2026-02-14T00:00:00Z"}`
}

func quoteJSON(t *testing.T, s string) string {
	data, err := json.Marshal(s)
	require.NoError(t, err)
	return string(data)
}

// hostileCopy copies the project into a new folder below root, and holds the locks of module
// held as a process that forged its record would. The copies stay until all are done with: see
// scriptsRoot.
func hostileCopy(t *testing.T, root, project string) string {
	t.Helper()
	parent, err := os.MkdirTemp(root, "")
	require.NoError(t, err)
	dir := filepath.Join(parent, filepath.Base(project))
	out, err := exec.Command("cp", "-a", project, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{sessionFolder(t, dir, "held"), ".lopen/modules/held"} {
		f, err := os.OpenFile(filepath.Join(dir, name, ".lock"), os.O_RDWR, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	}
	return dir
}

// intoPipe returns stdout and stderr of a command. How it ends does not matter.
func intoPipe(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := command(t, dir, args...).CombinedOutput()
	requireEnded(t, err)
	return string(out)
}

func requireEnded(t *testing.T, err error) {
	t.Helper()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
		require.True(t, exit.Exited(), "%v", err) // and was not killed, by a panic or for being late
	}
}

// onTerminal returns what a command shows on a terminal on which each question is
// answered with n.
func onTerminal(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out := strings.ReplaceAll(rawTerminal(t, command(t, dir, args...), "n", "n", "s", "n"), "\r\n", "\n") // the terminal's own CR
	return strings.ReplaceAll(strings.ReplaceAll(out, lineUp, ""), eraseLine, "")                         // and those of the status lines
}

// rawTerminal returns what a command writes to a terminal on which each question gets the next of some answers.
func rawTerminal(t *testing.T, cmd *exec.Cmd, answers ...string) string {
	t.Helper()
	person, terminal, err := openTerminal()
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there are no pseudo-terminals here")
	}
	require.NoError(t, err)
	defer person.Close()
	attrs, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	require.NoError(t, err)
	attrs.Lflag &^= unix.ECHO
	require.NoError(t, unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, attrs))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	require.NoError(t, cmd.Start())
	require.NoError(t, terminal.Close())
	_, err = person.WriteString("\x04") // the end for what reads without a question
	require.NoError(t, err)
	limit := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	var out bytes.Buffer
	typeAnswers(person, &out, func() string {
		if len(answers) == 0 {
			return "\x04"
		}
		answer := answers[0] + "\n"
		answers = answers[1:]
		return answer
	})
	requireEnded(t, cmd.Wait())
	return out.String()
}
