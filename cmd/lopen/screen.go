package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/writer/plain"
)

// screen is the person in front of one run or of several: on a terminal a status line for each
// run below everything that is printed, elsewhere one plain line an event on stderr.
type screen struct {
	app  *app
	ctx  context.Context //nolint:containedctx // the command's own: it ends questions
	live bool            // stderr is a terminal
	done chan struct{}

	mu     sync.Mutex
	panes  []*pane                    // Guarded by mu: of the runs, in the order of their beginnings.
	drawn  int                        // Guarded by mu: the number of status lines on the screen.
	inLine bool                       // Guarded by mu: a command's output stopped in the middle of a line.
	ended  bool                       // Guarded by mu.
	keys   map[chan struct{}]struct{} // Guarded by mu: of the runs that wait for a key.
	reads  *keyReader                 // Guarded by mu: reads keys, or did.
}

func newScreen(ctx context.Context, a *app) *screen {
	s := &screen{app: a, ctx: ctx, live: a.stderr.Terminal(), done: make(chan struct{}), keys: map[chan struct{}]struct{}{}}
	if s.live {
		go s.tick()
	}
	return s
}

// tick keeps the elapsed time on the status lines going.
func (s *screen) tick() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		case <-s.done:
			return
		}
	}
}

// stop takes the status lines away. The screen still prints after it.
func (s *screen) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.erase()
		s.ended = true
		close(s.done)
	}
}

// above writes a command's output above the status lines.
type above struct {
	s     *screen
	w     io.Writer
	shown bool // on the terminal that the status lines are on
}

func (o *above) Write(p []byte) (int, error) {
	if !o.s.live || !o.shown {
		return o.w.Write(p)
	}
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.erase()
	n, err := o.w.Write(p)
	o.s.inLine = o.s.app.stderr.InLine()
	return n, err
}

// line prints one line of lopen's own.
func (s *screen) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if s.inLine {
		fmt.Fprintln(s.app.stderr)
		s.inLine = false
	}
	fmt.Fprintln(s.app.stderr, text)
	s.draw()
}

// The status lines are erased from the last one, in which the cursor is, upwards.
const (
	eraseLine = "\r\x1b[K"
	lineUp    = "\x1b[A"
)

func (s *screen) erase() {
	if s.drawn > 0 {
		s.app.stderr.Control(eraseLine + strings.Repeat(lineUp+eraseLine, s.drawn-1))
		s.drawn = 0
	}
}

// draw shows the status lines, unless a command is in the middle of a line.
func (s *screen) draw() {
	if !s.live || s.ended || s.inLine {
		return
	}
	width, height := 80, 24
	if f, ok := s.app.stderr.Unwrap().(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			width, height = w, h
		}
	}
	var lines []string
	for _, p := range s.panes {
		if p.status.Task != "" {
			lines = append(lines, plain.Fit(plain.Line(p.prefix()+statusLine(p.status, time.Now())), width-1))
		}
	}
	if most := max(height/2, 1); len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("and %d more", len(lines)-most+1))
	}
	if len(lines) == 0 {
		return
	}
	s.erase()
	s.app.stderr.Control(eraseLine)
	fmt.Fprint(s.app.stderr, strings.Join(lines, "\n"))
	s.drawn = len(lines)
}

func statusLine(st loop.Status, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d/%d  %s", st.Progress.Done, st.Progress.Total, st.Task)
	if st.Attempt > 1 {
		fmt.Fprintf(&b, " (attempt %d)", st.Attempt)
	}
	if !st.Until.IsZero() {
		fmt.Fprintf(&b, " until %s", st.Until.Local().Format("15:04:05"))
	}
	fmt.Fprintf(&b, "  %s", now.Sub(st.Since).Truncate(time.Second))
	if st.Tokens > 0 {
		fmt.Fprintf(&b, "  %s tokens", plain.Count(st.Tokens))
	}
	if st.CostUSD > 0 {
		fmt.Fprintf(&b, "  $%.2f", st.CostUSD)
	}
	return b.String()
}
