package loop

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An event is a notification for a person who is elsewhere: one JSON object on stdin of
// Config.OnEvent.
type event struct {
	Event    string     `json:"event"` // one of the constants
	At       time.Time  `json:"at"`
	Session  string     `json:"session"`
	Module   string     `json:"module"`
	Project  string     `json:"project"`
	Task     string     `json:"task,omitempty"` // ID
	Name     string     `json:"name,omitempty"` // of the task
	Text     string     `json:"text"`           // what a person would read, a sentence or two of Markdown
	Problem  string     `json:"problem,omitempty"`
	Until    *time.Time `json:"until,omitempty"` // of a wait
	Exit     *int       `json:"exit,omitempty"`  // of a run that ended
	Done     int        `json:"done"`
	Total    int        `json:"total"`
	FailedN  int        `json:"failed"`
	CostUSD  float64    `json:"costUSD,omitempty"` // of this run so far
	Duration float64    `json:"seconds,omitempty"` // of the task, or of the run
}

// The events.
const (
	eventBegun   = "run-begun"
	eventDone    = "task-done"
	eventFailed  = "task-failed"
	eventWaiting = "waiting"
	eventNeeded  = "needed" // a person is needed
	eventPaused  = "paused" // by a storage error, the budget, max_iterations, or a request
	eventEnded   = "run-ended"
)

// Bounds of the texts of an event, in bytes before JSON escapes them, and of the number of
// events that wait.
const (
	maxEventName  = 1 << 10
	maxEventText  = 4 << 10
	maxWaiting    = 64
	eventLimit    = 10 * time.Second // of one start of the command, and of the wait at the end of the run
	eventGrace    = eventLimit / 20  // the last part of it, from SIGTERM to SIGKILL
	eventTailShow = 4 << 10          // bytes of the command's output in the log
)

// emit completes an event and queues it for Config.OnEvent. It never waits.
func (r *runner) emit(e event) {
	if r.events == nil {
		return
	}
	st := r.sess.State()
	p := st.Progress()
	e.At, e.Session, e.Module, e.Project = time.Now().UTC(), st.ID().String(), r.cfg.Module, plain.Line(r.cfg.Project)
	e.Done, e.Total, e.FailedN = p.Done, p.Total, p.Failed
	e.CostUSD = max(st.Totals().CostUSD-r.events.cost, 0)
	e.Text = cmp.Or(e.Text, e.Name, fmt.Sprintf("%d of %d tasks done", p.Done, p.Total))
	e.Name, e.Text = r.told(e.Name, maxEventName), r.told(e.Text, maxEventText)
	e.Task, e.Problem = plain.Markdown(r.shownID(e.Task)), plain.Markdown(e.Problem)
	data, err := strictjson.Marshal(e)
	if err != nil { // JSON cannot express the cost
		r.log.Warn().Err(err).Str("name", e.Event).Msg("event left out")
		return
	}
	r.events.send(message{e.Event, append(data, '\n')})
}

// told is a text of an event: nobody knows where Config.OnEvent sends it to.
func (r *runner) told(text string, most int) string {
	lines := strings.Split(plain.Clip(r.sess.Redact(text), most), "\n")
	for i := range lines {
		lines[i] = plain.Markdown(lines[i])
	}
	return strings.Join(lines, "\n")
}

// ended returns the event of a run that ends with err.
func (r *runner) ended(err error, begun time.Time) event {
	e := event{Event: eventEnded, Duration: time.Since(begun).Seconds()}
	code := 0
	if err != nil {
		code, e.Text = r.cfg.ExitCode(err), err.Error()
	}
	e.Exit = &code
	return e
}

// A message is an encoded event that waits for the command.
type message struct {
	name string
	data []byte
}

// events delivers messages to Config.OnEvent, in order and without delaying the run. One
// goroutine starts the command for each message. Messages wait in a queue; when it is full,
// the oldest is dropped.
type events struct {
	cost   float64 // cost of the session before this run
	queue  chan message
	log    *zerolog.Logger
	limit  time.Duration
	cancel context.CancelFunc
	over   chan struct{} // closed when the goroutine has ended
}

// newEvents starts the goroutine, which calls deliver for each message until stop.
func newEvents(log *zerolog.Logger, limit time.Duration, deliver func(context.Context, message)) *events {
	ctx, cancel := context.WithCancel(context.Background())
	e := &events{queue: make(chan message, maxWaiting), log: log, limit: limit, cancel: cancel, over: make(chan struct{})}
	go func() {
		defer close(e.over)
		for m := range e.queue {
			if ctx.Err() != nil {
				e.dropped(m)
				continue
			}
			deliver(ctx, m)
		}
	}()
	return e
}

// send puts a message into the queue. Only the run's goroutine calls it.
func (e *events) send(m message) {
	for {
		select {
		case e.queue <- m:
			return
		default:
		}
		select {
		case old := <-e.queue:
			e.dropped(old)
		default:
		}
	}
}

func (e *events) dropped(m message) {
	e.log.Warn().Str("name", m.name).Msg("on_event is too slow: event dropped")
}

// stop waits until all messages are delivered, at most for the limit. Then it ends a delivery in
// progress.
func (e *events) stop() {
	close(e.queue)
	defer e.cancel()
	late := time.NewTimer(e.limit - 2*eventGrace)
	defer late.Stop()
	select {
	case <-e.over:
		return
	case <-late.C:
	}
	e.cancel()
	gone := time.NewTimer(2 * eventGrace)
	defer gone.Stop()
	select {
	case <-e.over:
	case <-gone.C:
	}
}

// onEvent returns the function that runs Config.OnEvent for a message. The command has its own
// process group, no terminal, and inherits no lock. The function is for one goroutine.
func (r *runner) onEvent(limit time.Duration) func(context.Context, message) {
	warned := false
	command := r.sess.Redact(r.cfg.OnEvent)
	env := append(slices.Clone(r.cfg.Environ), "LOPEN_SESSION_ID="+r.sess.State().ID().String(), "LOPEN_MODULE="+r.cfg.Module)
	return func(ctx context.Context, m message) {
		res, err := child.RunOn(ctx, child.Command{
			Argv: []string{"sh", "-c", r.cfg.OnEvent}, Dir: r.cfg.Project, Env: append(slices.Clip(env), "LOPEN_EVENT="+m.name),
			Stdout: io.Discard, Stderr: io.Discard, Timeout: limit - eventGrace, Grace: eventGrace,
		}, m.data)
		line := r.log.Debug().Str("name", m.name)
		tail := plain.Clip(r.sess.Redact(string(res.Tail)), eventTailShow)
		optional(line, "text", tail)
		line.Int("exit", res.Exit).Msg("event told")
		switch {
		case err == nil && res.Cause == child.CauseTimeout:
			err = fmt.Errorf("ended after %s", limit)
		case err == nil && res.Cause == child.CauseNone && res.Exit != 0:
			err = fmt.Errorf("%s", describe(res, r.cfg))
		}
		if err != nil && ctx.Err() == nil && !warned {
			warned = true
			r.cfg.UI.Warn("on_event %q at %s: %v; --log-level debug shows what it prints", command, m.name, err)
		}
	}
}
