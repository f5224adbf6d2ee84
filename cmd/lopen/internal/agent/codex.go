package agent

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// codex is the profile of the Codex CLI, as of 0.169. Of codex exec only flags that stand
// before resume reach a resumed session's sandbox: resume itself refuses --sandbox. It is
// not asked whether it can work: codex login status does not know providers of the config.
func codex() Profile {
	return Profile{
		Name:   "codex",
		Start:  []string{"codex", "exec", "--sandbox", "workspace-write", "-"},
		Events: "codex",
		Resume: []string{"resume", placeholder},
		Open:   []string{"codex", "resume", placeholder},
		Login:  "codex login",
		built:  &built{choose: (*Agent).chooseCodex, launch: (*Agent).launchCodex},
	}
}

var codexValues = map[string]rune{
	"--config": one, "--enable": one, "--disable": one, "--image": many, "--model": one, "--local-provider": one, "--profile": one, "--sandbox": one,
	"--cd": one, "--add-dir": one, "--thread-source": one, "--cyber-access-program": one, "--output-schema": one, "--color": one,
	"--output-last-message": one, "--ask-for-approval": one, "--remote": one, "--remote-auth-token-env": one,
}

var codexAliases = map[string]string{
	"-c": "--config", "-i": "--image", "-m": "--model", "-p": "--profile", "-s": "--sandbox", "-C": "--cd", "-o": "--output-last-message", "-a": "--ask-for-approval",
	"--experimental-json": "--json", "--yolo": "--dangerously-bypass-approvals-and-sandbox",
}

// codexExec finds the word exec and what follows it.
func codexExec(line []string, program int) (exec int, t typed) {
	t = readFlags(line, max(program+1, 1), codexValues, codexAliases)
	if len(t.words) == 0 || line[t.words[0]] != "exec" && line[t.words[0]] != "e" {
		return -1, t
	}
	exec, t.words = t.words[0], t.words[1:]
	return exec, t
}

func (a *Agent) chooseCodex(string) string {
	exec, t := codexExec(a.argv, a.program)
	a.model = oneLine(t.last("--model"), maxName)
	if exec < 0 {
		a.profile.Events, a.own = "text", true
		return "codex asks a person: what works alone is codex exec"
	}
	a.own = t.has("--ephemeral") || len(t.words) > 0 && slices.Contains([]string{"resume", "fork", "review", "help"}, a.argv[t.words[0]])
	if !t.has("--json") {
		a.add(exec-max(a.program, 0), "--json")
	}
	config := slices.ContainsFunc(t.values("--config"), func(s string) bool { return strings.Contains(s, "sandbox_mode") })
	if !config && !a.own && !t.has("--sandbox", "--full-auto", "--approve-for-me", "--profile", "--dangerously-bypass-approvals-and-sandbox") {
		return "codex exec writes no file unless its config allows it: --sandbox workspace-write does"
	}
	return ""
}

// launchCodex puts resume and the session's ID behind all flags and before the prompt.
func (a *Agent) launchCodex(line []string, l Launch) []string {
	if l.Session == "" {
		return line
	}
	exec, t := codexExec(line, a.program)
	if exec < 0 {
		return line
	}
	prompt := []string{"-"}
	switch {
	case len(t.words) == 0:
		line = line[:t.end]
	case t.words[0] > t.end:
		prompt = slices.Clone(line[t.end:])
		line = line[:t.end]
	default:
		prompt = []string{line[t.words[0]]}
		line = slices.Delete(line, t.words[0], t.words[0]+1)
	}
	// A flag of its own ends the values of one that takes many; none may stand twice.
	line = append(slices.DeleteFunc(line, func(s string) bool { return codexAliases[s] == "--json" || s == "--json" }), "--json")
	return append(append(line, fill(a.profile.Resume, l.Session)...), prompt...)
}

// codexEvents are those of codex exec --json, as of 0.169.
type codexEvents struct {
	started map[string]bool // calls whose line is written, by the item's ID
	retries int             // in a row
	failed  string          // the words of turn.failed, or of an error that no turn followed
	model   string          // as it was typed: events do not name it
}

type codexEvent struct {
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
	Usage struct {
		Input  float64 `json:"input_tokens"`
		Cached float64 `json:"cached_input_tokens"`
		Output float64 `json:"output_tokens"`
	} `json:"usage"`
	Item codexItem `json:"item"`
}

// A codexItem is a message, or the use of a tool.
type codexItem struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Text    string `json:"text"`
	Message string `json:"message"`
	Command string `json:"command"`
	Server  string `json:"server"`
	Tool    string `json:"tool"`
	Query   string `json:"query"`
	Changes []struct {
		Path string `json:"path"`
	} `json:"changes"`
	Arguments map[string]strictjson.Value `json:"arguments"`
}

func (c *codexEvents) read(r *Reader, event strictjson.Value) {
	var e codexEvent
	if !decode(event, &e) {
		return
	}
	switch e.Type {
	case "thread.started":
		r.session(e.ThreadID)
		r.report.Model = c.model
	case "item.started", "item.completed":
		c.item(r, &e)
	case "turn.completed":
		r.report.Final, r.report.Success, c.failed = true, true, ""
		r.report.Turns++
		u := &r.report.Usage
		u.Cached = count(e.Usage.Cached)
		u.Input, u.Output = max(count(e.Usage.Input)-u.Cached, 0), count(e.Usage.Output)
	case "turn.failed":
		r.report.Final, c.failed = true, cmp.Or(e.Error.Message, "the turn failed")
		r.say("error: " + oneLine(c.failed, maxText))
	case "error":
		c.mishap(r, e.Message)
	}
}

func (c *codexEvents) item(r *Reader, e *codexEvent) {
	i := &e.Item
	switch i.Type {
	case "agent_message":
		if e.Type == "item.completed" && strings.TrimSpace(i.Text) != "" {
			r.report.Spoke, c.retries = true, 0
			r.say(i.Text)
		}
		return
	case "error":
		r.say("notice: " + oneLine(i.Message, maxText))
		return
	case "reasoning", "todo_list", "":
		return
	}
	c.retries = 0
	if c.begins(i.ID) {
		i.show(r)
	}
}

// begins says that an item was not seen before. Of many the oldest are forgotten.
func (c *codexEvents) begins(id string) bool {
	if c.started[id] {
		return false
	}
	if c.started == nil || len(c.started) >= 1000 {
		c.started = map[string]bool{}
	}
	if len(id) <= 100 {
		c.started[id] = true
	}
	return true
}

// show prints the use of a tool.
func (i *codexItem) show(r *Reader) {
	switch i.Type {
	case "command_execution":
		r.tool("command", i.Command)
	case "file_change":
		var paths []string
		for _, f := range i.Changes[:min(len(i.Changes), 20)] {
			paths = append(paths, f.Path)
		}
		r.tool("change", strings.Join(paths, " "))
	case "mcp_tool_call":
		r.tool(path.Join(i.Server, i.Tool), detail(i.Arguments))
	case "web_search":
		r.tool("search", i.Query)
	default:
		r.tool(i.Type, detail(i.Arguments))
	}
}

// mishap reads an error that is not the end by itself: a notice that codex tries again, or
// what turn.failed repeats.
func (c *codexEvents) mishap(r *Reader, text string) {
	if !strings.HasPrefix(text, "Reconnecting") {
		c.failed = text
		return
	}
	c.retries++
	r.say(oneLine(text, maxText))
	p := problemOf(text, r.now())
	if p == nil {
		return
	}
	// A count in the notice bounds the retries, to half a minute. There is none where codex
	// waits for the network, and behind a limit each of them takes as long as the limit.
	bounded := !strings.Contains(text, "waiting for")
	if !p.Kind.Waits() || p.Kind == Limit || !bounded && c.retries >= hopelessRetry {
		c.mend(p)
		r.give(*p)
	}
}

func (c *codexEvents) mend(p *Problem) {
	switch {
	case p.Kind == Login && !billing().MatchString(p.Text) && !strings.Contains(p.Text, "environment variable"):
		p.Mend = "codex login"
	case p.Kind == Model:
		p.Mend = "codex --model NAME"
	}
}

func (c *codexEvents) end(r *Reader) {
	if c.failed != "" {
		r.report.Success = false
		r.report.Error = oneLine(c.failed, maxText)
		if p := problemOf(c.failed, r.now()); p != nil {
			c.mend(p)
			r.report.Problem = p
		}
	}
	u := &r.report.Usage // it counts from the session's beginning, over turns and starts
	u.Input, u.Output, u.Cached = max(u.Input-r.before.Input, 0), max(u.Output-r.before.Output, 0), max(u.Cached-r.before.Cached, 0)
}
