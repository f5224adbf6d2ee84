package agent

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// hopelessRetry is at which of its own retries, in a row, an agent is stopped. Two of them
// pass within seconds and keep its work; from the third on it would wait for minutes with
// nothing to see, while the run's own waits are shown, end early, and resume the session.
const hopelessRetry = 3

// claudeEvents are those of claude --output-format stream-json --verbose, as of 2.1.
type claudeEvents struct {
	keySource string // of system init: ANTHROPIC_API_KEY, none
	retries   int    // in a row
	rejected  *Problem
	code      string // of the last message that is an error: rate_limit, authentication_failed
	result    *claudeEvent
	shown     string // the last text that was rendered
	streamed  int    // bytes of the text that is being streamed
}

type claudeEvent struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"`
	KeySource string `json:"apiKeySource"`
	Message   struct {
		Model   string           `json:"model"`
		Content strictjson.Value `json:"content"`
		Usage   claudeUsage      `json:"usage"`
	} `json:"message"`
	Error  string `json:"error"`              // a code
	Parent string `json:"parent_tool_use_id"` // of a subagent
	// Of stream_event.
	Event struct {
		Type  string `json:"type"`
		Delta struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"delta"`
	} `json:"event"`
	// Of api_retry.
	Attempt float64 `json:"attempt"`
	Max     float64 `json:"max_retries"`
	Status  float64 `json:"error_status"`
	// Of rate_limit_event.
	Info struct {
		Status   string  `json:"status"`
		ResetsAt float64 `json:"resetsAt"`
		Overage  bool    `json:"isUsingOverage"`
	} `json:"rate_limit_info"`
	// Of result.
	IsError   strictjson.Value       `json:"is_error"` // false, or it has failed
	APIStatus float64                `json:"api_error_status"`
	Result    string                 `json:"result"`
	Errors    []string               `json:"errors"`
	NumTurns  float64                `json:"num_turns"`
	Cost      *float64               `json:"total_cost_usd"`
	Usage     claudeUsage            `json:"usage"`
	Models    map[string]claudeModel `json:"modelUsage"`
	Denials   []struct {
		Tool  string                      `json:"tool_name"`
		Input map[string]strictjson.Value `json:"tool_input"`
	} `json:"permission_denials"`
}

type claudeUsage struct {
	Input  float64 `json:"input_tokens"`
	Made   float64 `json:"cache_creation_input_tokens"`
	Cached float64 `json:"cache_read_input_tokens"`
	Output float64 `json:"output_tokens"`
}

type claudeModel struct {
	Input  float64 `json:"inputTokens"`
	Made   float64 `json:"cacheCreationInputTokens"`
	Cached float64 `json:"cacheReadInputTokens"`
	Output float64 `json:"outputTokens"`
	Window float64 `json:"contextWindow"`
}

func (c *claudeEvents) read(r *Reader, event strictjson.Value) {
	var e claudeEvent
	if !decode(event, &e) {
		return
	}
	r.session(e.SessionID)
	switch e.Type {
	case "system":
		switch e.Subtype {
		case "init":
			c.keySource = e.KeySource
			r.report.Model = oneLine(e.Model, maxName)
		case "api_retry":
			c.retry(r, &e)
		}
	case "rate_limit_event":
		c.rejected = nil
		if e.Info.Status == "rejected" && !e.Info.Overage {
			c.rejected = &Problem{Kind: Limit, Text: "the usage limit is reached", ResetAt: unix(e.Info.ResetsAt, r.now())}
		}
	case "stream_event":
		c.stream(r, &e)
	case "assistant":
		c.message(r, &e)
	case "result":
		c.result = &e
		if text := e.words(); string(e.IsError) == "true" && text != c.shown {
			r.say("error: " + oneLine(text, maxText))
		}
	}
}

// stream renders text as it comes. The message that follows has all of it again.
func (c *claudeEvents) stream(r *Reader, e *claudeEvent) {
	switch text := e.Event.Delta.Text; {
	case e.Parent != "":
	case e.Event.Type == "message_start" || e.Event.Type == "content_block_start":
		c.streamed = 0
	case e.Event.Type == "content_block_delta" && e.Event.Delta.Type == "text_delta" && text != "":
		if c.streamed == 0 {
			r.endLine()
		}
		r.report.Spoke, r.open = true, !strings.HasSuffix(text, "\n")
		r.put(text)
		c.streamed += len(text)
		c.retries = 0
	}
}

// message renders an assistant's message. One that claude made up itself is an error.
func (c *claudeEvents) message(r *Reader, e *claudeEvent) {
	if u := &e.Message.Usage; e.Parent == "" {
		r.report.ContextUsed = cmp.Or(count(u.Input)+count(u.Made)+count(u.Cached), r.report.ContextUsed)
	}
	c.code = e.Error
	own := c.code == "" && e.Message.Model != "<synthetic>"
	if own {
		c.retries = 0
	}
	var blocks []struct {
		Type  string                      `json:"type"`
		Text  string                      `json:"text"`
		Name  string                      `json:"name"`
		Input map[string]strictjson.Value `json:"input"`
	}
	_ = strictjson.UnmarshalForeign(e.Message.Content, &blocks) // those before one that is odd are there
	for _, b := range blocks {
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) != "":
			if c.streamed == len(b.Text) {
				r.endLine()
			} else {
				r.say(b.Text)
			}
			c.shown, c.streamed = b.Text, 0
			r.report.Spoke = r.report.Spoke || own
		case b.Type == "tool_use" || b.Type == "server_tool_use":
			r.tool(b.Name, detail(b.Input))
		}
	}
}

// retry counts a try that failed and that claude makes again by itself.
func (c *claudeEvents) retry(r *Reader, e *claudeEvent) {
	c.retries++
	status := int(count(e.Status))
	what := e.Error
	if status != 0 {
		what = strconv.Itoa(status) + " " + what
	}
	p := c.problem(r, status, e.Error, oneLine("the API answered "+what, maxDetail))
	r.say(oneLine("retry "+number(e.Attempt)+" of "+number(e.Max)+": "+what, maxDetail))
	switch {
	case p == nil:
		p = &Problem{Kind: Network, Text: "the API cannot be reached"}
		if status != 0 {
			return
		}
		fallthrough
	case p.Kind.Waits():
		if c.retries >= hopelessRetry {
			r.give(*p)
		}
	default:
		r.give(*p)
	}
}

// problem is what a status and a code of the API mean, and the words with them.
func (c *claudeEvents) problem(r *Reader, status int, code, text string) *Problem {
	p := &Problem{Kind: kindOf(status, code), Text: text}
	if p.Kind == "" {
		p = problemOf(text, r.now())
	}
	if p == nil && code == "server_error" {
		p = &Problem{Kind: Overload, Text: text}
	}
	if p == nil {
		return nil
	}
	switch p.Kind {
	case Limit:
		if status == 429 || code == "rate_limit" { // else the words that name it have its end
			if c.rejected != nil {
				p.ResetAt = c.rejected.ResetAt
			}
			if p.ResetAt.IsZero() {
				p.ResetAt = resetAt(p.Text, r.now())
			}
		}
	case Login:
		p.Mend = cmp.Or(c.login(code, text), p.Mend)
	case Model:
		p.Mend = "claude --model NAME"
	}
	return p
}

// kindOf is the kind of problem that a status and a code of the API name by themselves, ""
// for none.
func kindOf(status int, code string) Kind {
	kind := map[string]Kind{
		"authentication_failed": Login, "oauth_org_not_allowed": Login, "billing_error": Login,
		"rate_limit": Limit, "overloaded": Overload, "model_not_found": Model,
	}[code]
	switch {
	case status == 401 || kind == Login:
		return Login
	case status == 429 || kind == Limit:
		return Limit
	case status >= 500 && status < 600:
		return Overload
	}
	return kind
}

// login is the command that mends a login; "" where none does.
func (c *claudeEvents) login(code, text string) string {
	switch {
	case code == "billing_error" || billing().MatchString(text):
		return ""
	case c.keySource == "ANTHROPIC_API_KEY":
		return "export ANTHROPIC_API_KEY=KEY"
	}
	return "claude auth login"
}

// unix is a time in seconds since 1970, zero when it is no time to wait for.
func unix(seconds float64, now time.Time) time.Time {
	if !(seconds > 0 && seconds < maxCount) {
		return time.Time{}
	}
	return plausible(time.Unix(int64(seconds), 0), now)
}
