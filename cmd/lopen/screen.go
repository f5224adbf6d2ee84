package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
)

// screen is the person in front of a run: on a terminal a status line below
// everything that is printed, elsewhere one plain line an event on stderr.
type screen struct {
	app  *app
	ctx  context.Context //nolint:containedctx // the run's own: it ends questions
	live bool            // stderr is a terminal
	done chan struct{}
	log  *zerolog.Logger // Set before the run begins; of its session then.

	mu     sync.Mutex
	status loop.Status // Guarded by mu.
	drawn  bool        // Guarded by mu: the status line is on the screen.
	inLine bool        // Guarded by mu: the command's output stopped in the middle of a line.
	ended  bool        // Guarded by mu.
}

func newScreen(ctx context.Context, a *app) *screen {
	s := &screen{app: a, ctx: ctx, live: a.stderr.Terminal(), done: make(chan struct{}), log: &a.logger}
	if s.live {
		go s.tick()
	}
	return s
}

// tick keeps the elapsed time on the status line going.
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

// stop takes the status line away. The screen still prints after it.
func (s *screen) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.erase()
		s.ended = true
		close(s.done)
	}
}

func (s *screen) Output() (io.Writer, io.Writer) {
	return &above{s, s.app.stdout.Output(), s.app.stdout.Terminal()}, &above{s, s.app.stderr.Output(), true}
}

// above writes a command's output above the status line.
type above struct {
	s     *screen
	w     io.Writer
	shown bool // on the terminal that the status line is on
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

func (s *screen) Say(format string, args ...any) {
	s.logLine(zerolog.InfoLevel, format, args...)
	s.line("", format, args...)
}

func (s *screen) Warn(format string, args ...any) {
	s.logLine(zerolog.WarnLevel, format, args...)
	s.line("warning: ", format, args...)
}

// logLine puts a line for the person into the log's file too. A log on stderr does not repeat
// it.
func (s *screen) logLine(level zerolog.Level, format string, args ...any) {
	if s.app.logFile != "" {
		s.log.WithLevel(level).Str("text", fmt.Sprintf(format, args...)).Msg("said")
	}
}

func (s *screen) Started(line string) {
	if !s.live {
		s.Say("%s", line)
	}
}

func (s *screen) Done(line string) {
	if s.live {
		s.Say("%s", line)
	}
}

func (s *screen) line(prefix, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if s.inLine {
		fmt.Fprintln(s.app.stderr)
		s.inLine = false
	}
	fmt.Fprintf(s.app.stderr, "%s%s\n", prefix, fmt.Sprintf(format, args...))
	s.draw()
}

func (s *screen) Status(st loop.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = st
	s.draw()
}

// eraseLine begins the terminal's line anew.
const eraseLine = "\r\x1b[K"

func (s *screen) erase() {
	if s.drawn {
		s.app.stderr.Control(eraseLine)
		s.drawn = false
	}
}

// draw shows the status line, unless the command is in the middle of a line.
func (s *screen) draw() {
	if !s.live || s.ended || s.inLine || s.status.Task == "" {
		return
	}
	width := 80
	if f, ok := s.app.stderr.Unwrap().(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			width = w
		}
	}
	s.app.stderr.Control(eraseLine)
	fmt.Fprint(s.app.stderr, plain.Fit(plain.Line(statusLine(s.status, time.Now())), width-1))
	s.drawn = true
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
	return b.String()
}

func (s *screen) Choose(question string, choices []loop.Choice) (rune, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", question)
	for _, c := range choices {
		fmt.Fprintf(&b, "  %c  %s\n", c.Key, plain.Line(c.Text))
	}
	for {
		s.mu.Lock()
		s.erase()
		s.status.Task = ""
		s.mu.Unlock()
		answer, err := s.app.ask(s.ctx, b.String()+"> ")
		if err != nil {
			return 0, err
		}
		for _, c := range choices {
			if strings.HasPrefix(strings.ToLower(answer), string(c.Key)) {
				return c.Key, nil
			}
		}
	}
}

func (s *screen) Edit(path string) error {
	editor := s.app.getenv("VISUAL")
	if editor == "" {
		editor = s.app.getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	cmd := exec.CommandContext(s.ctx, "sh", "-c", editor+` "$1"`, "sh", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = s.app.stdin, s.app.stdout.Unwrap(), s.app.stderr.Unwrap(), s.app.environ
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("edit %s with %s: %w", path, editor, err)
	}
	return nil
}

// agreed asks a question that only a yes answers.
func (a *app) agreed(ctx context.Context, question string) (bool, error) {
	answer, err := a.ask(ctx, question+" [y/N] ")
	return answer == "y" || answer == "Y" || answer == "yes", err
}

// ask prints a question and reads a line. It gives up when ctx ends, and
// leaves its reader behind then: the process is about to end.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	if !a.interactive() {
		return "", errors.New("there is no terminal to ask on")
	}
	fmt.Fprint(a.stderr, question)
	type reply struct {
		line string
		err  error
	}
	got := make(chan reply, 1)
	go func() {
		if a.lines == nil {
			a.lines = bufio.NewReader(a.stdin)
		}
		line, err := a.lines.ReadString('\n')
		got <- reply{line, err}
	}()
	select {
	case r := <-got:
		return strings.TrimSpace(r.line), r.err
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return "", ctx.Err()
	}
}
