package agent

import (
	"bytes"
	"cmp"
	"io"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// maxLine bounds a line of events that is held, in bytes: a longer one is skipped.
const maxLine = 1 << 20

// maxJoined bounds how often a line is read again because another event stood in it.
const maxJoined = 16

// injected is how an event begins that some versions of Claude Code write into the middle of another one.
const injected = `{"type":"rate_limit_event"`

// maxStderr bounds what Stderr keeps, in bytes.
const maxStderr = 16 << 10

// A Reader reads an agent's stdout, and passes on what people are to see.
type Reader struct {
	out      io.Writer
	events   events // nil when they are not known
	event    func()
	hopeless func(Problem)
	now      func() time.Time

	held    []byte // the line that has no end yet
	long    bool   // it is longer than maxLine
	torn    bool   // the line before broke off
	joined  int    // how often the line was put together again
	open    bool   // text was rendered without a line feed at its end
	skipped int    // lines that were too long, or no JSON though they began like it
	stderr  []byte
	before  Usage
	stopped bool // hopeless was called
	err     error
	report  Report
}

// events understands the events of one agent. Each of its methods adds to r.report.
type events interface {
	// read reads one event, which is a JSON object. What it does not know it ignores.
	read(r *Reader, event strictjson.Value)
	// end judges what is known when the agent has ended.
	end(r *Reader)
}

// Read returns a reader of one attempt's stdout that writes rendered text to out: what the
// model says as it comes, a tool call as one line with its name and its file or command, no
// thinking; of an agent whose events are not known, everything as it is. event is called
// for each event, or each piece of output where events are not known; hopeless is called
// once, at the first event from which on the agent only retries what cannot succeed: the
// caller ends the attempt. Both may be nil and are called from Write.
func (a *Agent) Read(out io.Writer, event func(), hopeless func(Problem)) *Reader {
	r := &Reader{out: out, event: event, hopeless: hopeless, now: time.Now}
	switch a.profile.Events {
	case "claude":
		r.events = &claudeEvents{}
	case "codex":
		r.events = &codexEvents{model: a.model}
	case "opencode":
		r.events = &opencodeEvents{model: a.model}
	}
	return r
}

// Write takes output in pieces of any size. Its error is that of the writer behind it.
func (r *Reader) Write(p []byte) (int, error) {
	if r.events == nil {
		r.tick()
		return r.out.Write(p)
	}
	n := len(p)
	for len(p) > 0 && r.err == nil {
		piece, rest, ended := bytes.Cut(p, []byte("\n"))
		switch {
		case r.long:
		case len(r.held)+len(piece) > maxLine:
			r.long, r.held = true, nil
			r.skipped++
		default:
			r.held = append(r.held, piece...)
		}
		if ended {
			r.line()
		}
		p = rest
	}
	if r.err != nil {
		return 0, r.err
	}
	return n, nil
}

// Close renders what was held back: the last line, when it had no end. It is called once,
// after the agent has ended.
func (r *Reader) Close() error {
	if r.events != nil {
		if len(r.held) > 0 {
			r.line()
		}
		r.endLine()
	}
	return r.err
}

// Stderr takes the end of what the agent wrote to stderr. Where its events do not say why
// it ended, the Report reads what is wrong from there. It is called before Report.
func (r *Reader) Stderr(tail []byte) {
	r.stderr = bytes.Clone(tail[max(0, len(tail)-maxStderr):])
}

// Before sets what the session that is resumed has used already, by the sum of its earlier
// Reports: some agents count from a session's beginning. It is called before Report.
func (r *Reader) Before(u Usage) { r.before = u }

// Report is what the events so far show. It may be asked for after Close.
func (r *Reader) Report() Report {
	if r.events == nil {
		return Report{}
	}
	ended := r.report
	r.events.end(r)
	if !r.report.Final && !r.report.Spoke && r.report.Problem == nil {
		r.readStderr()
	}
	rep := r.report
	r.report = ended
	if rep.Problem != nil {
		rep.Error = cmp.Or(rep.Error, rep.Problem.Text)
		p := *rep.Problem
		p.Text = clip(p.Text, maxText)
		rep.Problem = &p
	}
	rep.Error = clip(rep.Error, maxText)
	if rep.Success {
		rep.Error, rep.Problem = "", nil // whatever there was, it was overcome
	}
	return rep
}

// readStderr looks for what keeps an agent from working that printed no event about it.
func (r *Reader) readStderr() {
	for line := range strings.Lines(string(r.stderr)) {
		line = strings.TrimSpace(plain.Uncolored(line))
		if gone().MatchString(line) {
			r.report.Gone, r.report.Error = true, line
			return
		}
		if p := problemOf(line, r.now()); p != nil {
			r.report.Problem, r.report.Error = p, line
			return
		}
		if len(line) > 7 && strings.EqualFold(line[:7], "error: ") && r.report.Error == "" {
			r.report.Error = line[7:]
		}
	}
}

// line reads the line that is held.
func (r *Reader) line() {
	line := bytes.TrimSpace(r.held)
	r.held = r.held[:0]
	switch {
	case r.long:
		r.long, r.torn = false, false
		r.tick()
	case len(line) == 0:
	case line[0] == '{':
		r.torn = !r.objects(line)
	case r.torn: // the rest of an event that broke off
		r.torn = false
		r.tick()
	default:
		r.say(string(line))
	}
	if cap(r.held) > maxLine/4 && len(r.held) == 0 {
		r.held = nil
	}
}

// objects reads all events of a line; false when it broke off.
func (r *Reader) objects(line []byte) bool {
	for event, err := range strictjson.Records(line) {
		if err == nil {
			r.one(event)
			continue
		}
		r.tick()
		if i := bytes.LastIndex(event, []byte(injected)); i > 0 && r.joined < maxJoined && strictjson.Check(event[i:]) == nil {
			r.one(event[i:])
			r.held = append(r.held, bytes.Clone(event[:i])...) // its rest is the next line
			r.joined++
			return true
		}
		r.joined = 0
		return r.behind(event)
	}
	r.joined = 0
	return true
}

// behind reads the whole events behind one that broke off; false when the last one did. What stands where that one may
// have a value is none: an input of a tool is the model's own.
func (r *Reader) behind(line []byte) bool {
	broke := false
	var before []byte
	for event, err := range strictjson.Records(line, `{"type":`) {
		value := broke && valueFollows(before)
		switch broke, before = err != nil || value, event; {
		case err != nil:
			r.skipped++
		case !value:
			r.one(event)
		}
	}
	return !broke
}

// valueFollows says that the beginning of a JSON object ends where a value may stand.
func valueFollows(text []byte) bool {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		}
	}
	text = bytes.TrimSpace(text)
	return !quoted && bytes.ContainsRune([]byte(":[,"), rune(text[len(text)-1]))
}

func (r *Reader) one(event strictjson.Value) {
	r.tick()
	r.events.read(r, event)
}

func (r *Reader) tick() {
	if r.event != nil {
		r.event()
	}
}

// give reports a problem that makes the agent's retries hopeless.
func (r *Reader) give(p Problem) {
	r.report.Problem = &p
	if !r.stopped && r.hopeless != nil {
		r.stopped = true
		r.hopeless(p)
	}
}
