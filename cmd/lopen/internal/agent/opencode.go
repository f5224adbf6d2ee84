package agent

import (
	"cmp"
	"strings"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// opencode is the profile of opencode, as of 1.18. It has nothing to ask whether it can
// work: its list of credentials exits 0 when it is empty.
func opencode() Profile {
	return Profile{
		Name:   "opencode",
		Start:  []string{"opencode", "run"},
		Events: "opencode",
		Resume: []string{"--session", placeholder},
		Open:   []string{"opencode", "--session", placeholder},
		Login:  "opencode auth login",
		built:  &built{choose: (*Agent).chooseOpencode, launch: (*Agent).launchOpencode},
	}
}

var opencodeValues = map[string]rune{
	"--log-level": one, "--command": one, "--session": one, "--model": one, "--agent": one, "--format": one, "--file": many, "--title": one,
	"--attach": one, "--password": one, "--username": one, "--dir": one, "--port": one, "--variant": one,
}

var opencodeAliases = map[string]string{
	"-c": "--continue", "-s": "--session", "-m": "--model", "-f": "--file", "-p": "--password", "-u": "--username", "-i": "--interactive",
}

func (a *Agent) chooseOpencode(string) string {
	t := readFlags(a.argv, max(a.program+1, 1), opencodeValues, opencodeAliases)
	a.model = oneLine(t.last("--model"), maxName)
	if len(t.words) == 0 || a.argv[t.words[0]] != "run" || t.has("--interactive") {
		a.profile.Events, a.own = "text", true
		return "opencode asks a person: what works alone is opencode run"
	}
	a.own = t.has("--session", "--continue", "--fork")
	a.run = t.words[0] - max(a.program, 0)
	switch {
	case !t.has("--format"):
		a.add(a.run, "--format", "json")
	case t.last("--format") != "json":
		a.profile.Events = "text"
		return "with --format " + t.last("--format") + " opencode's events are not known: its exit code and its last line decide"
	}
	return ""
}

func (a *Agent) launchOpencode(line []string, l Launch) []string {
	if l.Session == "" {
		return line
	}
	b := &Agent{line: line, program: a.program}
	b.add(a.run, fill(a.profile.Resume, l.Session)...)
	return b.line
}

// opencodeEvents are those of opencode run --format json, as of 1.18. It says nothing of
// its own retries: behind a limit it is silent until the idle time-out ends it.
type opencodeEvents struct {
	model string // as it was typed: events do not name it
}

type opencodeEvent struct {
	Type      string `json:"type"`
	SessionID string `json:"sessionID"`
	Part      struct {
		Text   string `json:"text"`
		Tool   string `json:"tool"`
		Reason string `json:"reason"`
		State  struct {
			Status string                      `json:"status"`
			Error  string                      `json:"error"`
			Input  map[string]strictjson.Value `json:"input"`
		} `json:"state"`
		Cost   *float64 `json:"cost"`
		Tokens struct {
			Total     float64 `json:"total"`
			Input     float64 `json:"input"`
			Output    float64 `json:"output"`
			Reasoning float64 `json:"reasoning"`
			Cache     struct {
				Read  float64 `json:"read"`
				Write float64 `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
	} `json:"part"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string  `json:"message"`
			Status  float64 `json:"statusCode"`
		} `json:"data"`
	} `json:"error"`
}

func (o *opencodeEvents) read(r *Reader, event strictjson.Value) {
	var e opencodeEvent
	if !decode(event, &e) {
		return
	}
	r.session(e.SessionID)
	r.report.Model = o.model
	switch e.Type {
	case "text":
		if strings.TrimSpace(e.Part.Text) != "" {
			r.report.Spoke = true
			r.say(e.Part.Text)
		}
	case "tool_use":
		r.tool(e.Part.Tool, detail(e.Part.State.Input))
		if s := e.Part.State; s.Status == "error" && strings.Contains(s.Error, "rejected permission") {
			d := Denied{Tool: oneLine(e.Part.Tool, 60), Detail: oneLine(detail(s.Input), maxDetail)}
			r.deny(d)
			r.report.Error = "it ended after a refused permission: " + d.Tool + " " + d.Detail
		}
	case "step_finish":
		o.step(r, &e)
	case "error":
		o.failed(r, &e)
	}
}

// step counts a step, which has numbers of its own. The last one says how the run ended.
func (o *opencodeEvents) step(r *Reader, e *opencodeEvent) {
	u, t := &r.report.Usage, &e.Part.Tokens
	u.Turns++
	u.ContextUsed = cmp.Or(count(t.Input)+count(t.Cache.Write)+count(t.Cache.Read), u.ContextUsed)
	u.Input += count(t.Input) + count(t.Cache.Write)
	u.Cached += count(t.Cache.Read)
	u.Output += count(t.Output) + count(t.Reasoning)
	if usd, ok := cost(e.Part.Cost); ok {
		u.CostUSD += usd
		u.CostKnown = true
	}
	r.report.Final = e.Part.Reason != "tool-calls" && e.Part.Reason != ""
	r.report.Success = e.Part.Reason == "stop"
	if r.report.Final && !r.report.Success {
		r.report.Error = "it ended with " + oneLine(e.Part.Reason, 60)
	}
}

func (o *opencodeEvents) failed(r *Reader, e *opencodeEvent) {
	r.report.Final, r.report.Success = true, false
	text := cmp.Or(e.Error.Data.Message, e.Error.Name, "an error without words")
	r.report.Error = oneLine(text, maxText)
	r.say("error: " + r.report.Error)
	p := problemOf(e.Error.Name+": "+text, r.now())
	status := int(count(e.Error.Data.Status))
	switch kind := kindOf(status, ""); {
	case kind == Limit && (p == nil || p.Kind != Login):
		p = &Problem{Kind: Limit, ResetAt: resetAt(text, r.now())}
	case status == 404:
		p = &Problem{Kind: Model}
	case kind == Login, kind == Overload:
		p = &Problem{Kind: kind}
	}
	if p == nil {
		return
	}
	p.Text = r.report.Error
	switch {
	case p.Kind == Login && !billing().MatchString(text):
		p.Mend = "opencode auth login"
	case p.Kind == Model:
		p.Mend = "opencode run --model PROVIDER/MODEL"
	}
	r.report.Problem = p
}

func (o *opencodeEvents) end(*Reader) {}
