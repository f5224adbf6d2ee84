package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/writer/documents"
)

// startLog makes the log. asked says that its level was typed.
func (a *app) startLog(asked bool) error {
	lvl, err := zerolog.ParseLevel(a.logLevel)
	if err != nil || lvl == zerolog.NoLevel {
		return usagef("--log-level %q: give debug, info, warn or error", a.logLevel)
	}
	to := a.stderr
	if a.logFile != "" {
		f, err := documents.AppendFile(a.logFile)
		if err != nil {
			return fmt.Errorf("open log file: %w", err)
		}
		to, a.logSink = terminal.New(f), f
	}
	var sink io.Writer
	switch a.logFormat {
	case "json":
		sink = to.JSON()
	case "console":
		sink = zerolog.ConsoleWriter{Out: to.Colored(), NoColor: a.logFile != "" || !a.colored(to), TimeFormat: "15:04:05.000"}
	default:
		return usagef("--log-format %q: give console or json", a.logFormat)
	}
	logTimes()
	// A log stays on the disk, and errors quote what they are about.
	a.logger = zerolog.New(zerolog.SyncWriter(redacting{sink})).Level(lvl).With().Timestamp().Logger()
	if !asked && a.logFile == "" {
		a.logger = a.logger.Hook(once{})
	}
	switch a.color {
	case "auto", "always", "never":
		return nil
	}
	return usagef("--color %q: give auto, always or never", a.color)
}

// logTimes has all logs of the process name moments in nanoseconds.
var logTimes = sync.OnceFunc(func() { zerolog.TimeFieldFormat = time.RFC3339Nano })

// redacting hides the credentials of each line that is written to it, with the rules
// that are built in: the log begins before there are settings.
type redacting struct{ to io.Writer }

func (w redacting) Write(p []byte) (int, error) {
	var rules redact.Redactor
	line, n, err := rules.JSON(bytes.TrimRight(p, "\n"))
	if err != nil {
		line, n = rules.Bytes(p)
	} else if n > 0 {
		line = append(line, '\n')
	}
	if n == 0 {
		return w.to.Write(p)
	}
	if _, err := w.to.Write(line); err != nil {
		return 0, err
	}
	return len(p), nil
}

// reportedElsewhere are warnings and errors of the log that the command prints in its own
// words: on a terminal they would appear twice. A log that was asked for, by a level or a
// file, has them all.
var reportedElsewhere = []string{
	"paused on a storage error",
	"damaged session moved aside",
	"orphan found",
	"orphan left alone: it is no command of a run any more",
	"the session's lock was lost and is taken again; nobody had gone on with the session",
	"the disk is nearly full",
	"the output of an attempt is not kept",
	"session closed",
	"the checkpoints that may not be removed take more than the limit",
}

// once leaves out what the command prints itself.
type once struct{}

func (once) Run(e *zerolog.Event, _ zerolog.Level, message string) {
	if slices.Contains(reportedElsewhere, message) {
		e.Discard()
	}
}
