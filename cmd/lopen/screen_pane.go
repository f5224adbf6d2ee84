package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
	"github.com/lopen-dev/lopen/writer/plain"
)

// pane is what one run has of the screen. Where several runs have one, each of its lines begins
// with the run's module.
type pane struct {
	*screen
	module string          // "" where the run is the only one
	log    *zerolog.Logger // Set before the run begins; of its session then.
	status loop.Status     // Guarded by screen.mu.
	begun  []*prefixed     // Guarded by screen.mu: output that may have begun a line.
}

// pane adds a run to the screen.
func (s *screen) pane(module string) *pane {
	p := &pane{screen: s, module: module, log: &s.app.logger}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.panes = append(s.panes, p)
	return p
}

func (p *pane) prefix() string {
	if p.module == "" {
		return ""
	}
	return p.module + " | "
}

// streams returns the app with streams that lead to the pane: what is printed there has the
// prefix, and nobody can be asked there.
func (p *pane) streams(a *app) *app {
	own := *a
	own.stdout, own.stderr = terminal.New(&prefixed{pane: p, to: a.stdout}), terminal.New(&prefixed{pane: p, to: a.stderr})
	return &own
}

// stop takes the status of the run away. A run that is alone stops the screen.
func (p *pane) stop() {
	if p.module == "" {
		p.screen.stop()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush()
	p.status = loop.Status{}
	p.erase()
	p.draw()
}

func (p *pane) Output() (io.Writer, io.Writer) {
	if p.module == "" {
		return &above{p.screen, p.app.stdout.Output(), p.app.stdout.Terminal()}, &above{p.screen, p.app.stderr.Output(), true}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush()
	p.draw()
	out, err := &prefixed{pane: p, to: p.app.stdout, output: true}, &prefixed{pane: p, to: p.app.stderr, output: true}
	p.begun = []*prefixed{out, err}
	return out, err
}

// flush ends the lines that the run's commands began. The caller holds mu.
func (p *pane) flush() {
	for _, l := range p.begun {
		l.end()
	}
}

// maxBegun bounds what is held of a line, in bytes.
const maxBegun = 16 << 10

// prefixed writes whole lines above the status lines, each with the prefix of its pane.
type prefixed struct {
	pane   *pane
	to     *terminal.Stream
	output bool   // of a command, in place of lopen's own text
	held   []byte // Guarded by screen.mu: the line that was begun.
}

func (l *prefixed) Write(b []byte) (int, error) {
	l.pane.mu.Lock()
	defer l.pane.mu.Unlock()
	defer l.pane.draw()
	if !l.output {
		l.pane.flush()
	}
	n := len(b)
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		room := maxBegun - len(l.held)
		if len(line) > room {
			line, rest, whole = b[:room], b[room:], true
		}
		l.held = append(l.held, line...)
		if b = rest; whole {
			if err := l.put(); err != nil {
				return n - len(b), err
			}
		}
	}
	return n, nil
}

// end prints what is held as a line. The caller holds mu.
func (l *prefixed) end() {
	if len(l.held) > 0 {
		_ = l.put()
	}
}

// put prints the line that is held. A lone carriage return begins a line on a terminal.
func (l *prefixed) put() error {
	held := l.held
	l.held = nil
	parts := [][]byte{held}
	if l.to.Terminal() {
		parts = bytes.Split(bytes.TrimRight(held, "\r"), []byte{'\r'})
	}
	l.pane.erase()
	for _, part := range parts {
		text := append([]byte(l.pane.prefix()), part...)
		if err := l.print(append(text, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (l *prefixed) print(line []byte) error {
	to := io.Writer(l.to)
	if l.output {
		to = l.to.Output() // what it holds of the line before is another run's
	}
	_, err := to.Write(line)
	return err
}

func (p *pane) Say(format string, args ...any) {
	p.logLine(zerolog.InfoLevel, format, args...)
	p.line("", format, args...)
}

func (p *pane) Warn(format string, args ...any) {
	p.logLine(zerolog.WarnLevel, format, args...)
	p.line("warning: ", format, args...)
}

// logLine puts a line for the person into the log's file too. A log on stderr does not repeat
// it.
func (p *pane) logLine(level zerolog.Level, format string, args ...any) {
	if p.app.logFile != "" {
		p.log.WithLevel(level).Str("text", fmt.Sprintf(format, args...)).Msg("said")
	}
}

func (p *pane) Started(line string) {
	if !p.live {
		p.Say("%s", line)
	}
}

func (p *pane) Done(line string) {
	if p.live {
		p.Say("%s", line)
	}
}

func (p *pane) line(prefix, format string, args ...any) {
	text := prefix + fmt.Sprintf(format, args...)
	if p.module == "" {
		p.screen.line(text)
		return
	}
	l := &prefixed{pane: p, to: p.app.stderr}
	_, _ = l.Write([]byte(text + "\n"))
}

func (p *pane) Status(st loop.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = st
	p.draw()
}

func (p *pane) Choose(question string, choices []loop.Choice) (rune, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", question)
	for _, c := range choices {
		fmt.Fprintf(&b, "  %c  %s\n", c.Key, plain.Line(c.Text))
	}
	for {
		p.mu.Lock()
		p.erase()
		p.status.Task = ""
		p.mu.Unlock()
		answer, err := p.app.ask(p.ctx, b.String(), "> ")
		if err != nil {
			return 0, err
		}
		for _, c := range choices {
			word, _, _ := strings.Cut(c.Text, " ")
			if strings.EqualFold(answer, string(c.Key)) || strings.EqualFold(answer, strings.TrimRight(word, ":,")) {
				return c.Key, nil
			}
		}
	}
}

func (p *pane) Edit(path string) error {
	editor := p.app.getenv("VISUAL")
	if editor == "" {
		editor = p.app.getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	cmd := exec.CommandContext(p.ctx, "sh", "-c", editor+` "$1"`, "sh", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = p.app.stdin, p.app.stdout.Unwrap(), p.app.stderr.Unwrap(), p.app.environ
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("edit %s with %s: %w", path, editor, err)
	}
	return nil
}
