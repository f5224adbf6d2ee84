package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/redact"
)

// app is what every command shares: the streams, the global flags, and the
// project that they lead to. Owned by the goroutine that executes the command.
type app struct {
	stdin          *os.File
	lines          *bufio.Reader // of stdin, once something was asked
	stdout, stderr *plain.Stream
	args, environ  []string

	invoked   string // what a lock says of who holds it
	dir       string
	logLevel  string
	logFormat string
	logFile   string
	color     string

	logger  zerolog.Logger
	logSink io.Closer
	out     outputFlags

	ignoredSaid bool // that the project's config.json holds what it may not
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "lopen",
		Short:         "Run a coding agent over the tasks of a plan, and keep what it does",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			a.invoked = invocation(cmd, args)
			return a.startLog(cmd.Flags().Changed("log-level"))
		},
		PersistentPostRun: func(*cobra.Command, []string) {
			if a.logSink != nil {
				_ = a.logSink.Close()
			}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.overview(cmd) },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; see `%s --help`", err, cmd.CommandPath())
	})
	f := root.PersistentFlags()
	f.StringVarP(&a.dir, "dir", "C", "", "run as if started in `DIR`")
	f.StringVar(&a.logLevel, "log-level", "warn", "`LEVEL`: debug, info, warn or error")
	f.StringVar(&a.logFormat, "log-format", "console", "`FORMAT`: console or json")
	f.StringVar(&a.logFile, "log-file", "", "append the log to `FILE`")
	f.StringVar(&a.color, "color", "auto", "`WHEN`: auto, always or never")
	f.SortFlags = false

	root.AddCommand(
		newInit(a), newRun(a), newReport(a),
		group("session", "List, show, resume, check and tidy sessions",
			newSessionList(a), newSessionShow(a), newSessionResume(a), newSessionPause(a), newSessionFork(a), newSessionLog(a), newSessionOutput(a), newSessionWatch(a), newSessionVerify(a), newSessionRecover(a),
			newSessionRename(a), newSessionPin(a, true), newSessionPin(a, false), newSessionDelete(a), newSessionRestore(a), newSessionPrune(a)),
		group("plan", "Show, create and edit plans", newPlanShow(a), newPlanCreate(a), newPlanTick(a, true), newPlanTick(a, false),
			newPlanAdd(a), newPlanRemove(a), newPlanMove(a), newPlanRename(a), newPlanMark(a)),
		group("section", "List and show the sections of a document, and what drifted", newSectionList(a), newSectionShow(a), newSectionDrift(a)),
		group("research", "List and write research documents", newResearchList(a), newResearchNew(a)),
		group("cache", "Warm, look at and clear what is kept of documents", newCacheWarm(a), newCacheStatus(a), newCacheClear(a)),
		newAssess(a),
		group("files", "Record the project's files, and list what changed since", newFilesRecord(a), newFilesChanged(a)),
		group("trust", "List and revoke the commands that you approved", newTrustList(a), newTrustRevoke(a)),
		group("config", "Show and set the settings", newConfigShow(a), newConfigSet(a)),
		group("checkpoint", "Keep the project's files, compare them, bring them back",
			newCheckpointCreate(a), newCheckpointList(a), newCheckpointShow(a), newCheckpointCat(a), newCheckpointDiff(a),
			newCheckpointRewind(a), newCheckpointRestore(a), newCheckpointPin(a, true), newCheckpointPin(a, false)),
		newUndo(a), newDoctor(a), newVersion(a),
		&cobra.Command{Use: "prompt", Short: "What a command is told: the prompt, the variables, the template", Long: loop.PromptHelp},
	)
	asUsage(root)
	shortHelp(root)
	return root
}

// group is a command that only holds others.
func group(name, short string, sub ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: name, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q for %q; see `%s --help`", args[0], cmd.CommandPath(), cmd.CommandPath())
			}
			return cmd.Help()
		}}
	g.AddCommand(sub...)
	return g
}

// asUsage makes every complaint about arguments and flags a usage error.
func asUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(check(cmd, args), cmd.ValidateFlagGroups()); err != nil {
				return usagef("%w: %s; see `%s --help`", err, cmd.UseLine(), cmd.CommandPath())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		asUsage(sub)
	}
}

// startLog makes the log. asked says that its level was typed.
func (a *app) startLog(asked bool) error {
	lvl, err := zerolog.ParseLevel(a.logLevel)
	if err != nil || lvl == zerolog.NoLevel {
		return usagef("--log-level %q: give debug, info, warn or error", a.logLevel)
	}
	to := a.stderr
	if a.logFile != "" {
		f, err := lifecycle.AppendRegular(a.logFile)
		if err != nil {
			return fmt.Errorf("open log file: %w", err)
		}
		to, a.logSink = plain.New(f), f
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
	zerolog.TimeFieldFormat = time.RFC3339Nano
	// A log is kept, and errors quote what they are about.
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

// colored says whether output to s is coloured: --color, then NO_COLOR, then
// whether s is a terminal.
func (a *app) colored(s *plain.Stream) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	return a.getenv("NO_COLOR") == "" && s.Terminal()
}

// interactive says whether there is a person to ask.
func (a *app) interactive() bool { return isTerminal(a.stdin) && a.stderr.Terminal() }

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

func (a *app) getenv(key string) string {
	for i := len(a.environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.environ[i], key+"="); ok {
			return v
		}
	}
	return ""
}

// open opens the project's store for a command that needs one.
func (a *app) open() (*lifecycle.Store, error) {
	project, err := a.project()
	if err != nil {
		return nil, err
	}
	return lifecycle.Open(project, a.storeOptions(project))
}

// invocation is the command and what it is about, the module or the session. What else
// was typed may hold a credential, and others read the locks.
func invocation(cmd *cobra.Command, args []string) string {
	name := cmd.CommandPath()
	if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
		name += " " + args[0]
	}
	return name
}

func (a *app) storeOptions(project string) lifecycle.Options {
	return lifecycle.Options{
		Logger: a.logger, Command: a.invoked,
		Outside: git.Excludes(project, a.environ, a.logger),
		Git: func() checkpoint.Git {
			s := git.Head(context.Background(), project, a.environ)
			return checkpoint.Git{Head: s.Head, Branch: s.Branch}
		},
	}
}

// settings loads the layers of settings for a project. config is the content of
// .lopen/config.json, flags what was set on the command line.
func (a *app) settings(config []byte, flags map[string]string) (*settings.Values, error) {
	user, err := a.userConfig()
	if err != nil {
		return nil, err
	}
	v, err := settings.Load(config, user, a.environ, flags)
	if err != nil {
		return nil, &usageError{err}
	}
	if !a.ignoredSaid {
		for _, text := range v.Ignored() {
			a.ignoredSaid = true
			fmt.Fprintf(a.stderr, "warning: %s\n", text)
		}
	}
	return v, nil
}

// maxConfig bounds the user's config.json, in bytes, as it bounds the project's.
const maxConfig = 1 << 20

func (a *app) userConfig() ([]byte, error) {
	path, err := a.userConfigPath()
	if err != nil {
		return nil, nil //nolint:nilerr // a user without a home has no config
	}
	data, err := lifecycle.ReadRegular(path, maxConfig)
	if os.IsNotExist(err) {
		return nil, nil
	}
	return data, err
}

func (a *app) userConfigPath() (string, error) {
	dir := a.getenv("XDG_CONFIG_HOME")
	if dir == "" {
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "lopen", "config.json"), nil
}

// refuseInside refuses what would change the session of the run that this
// command was started in.
func (a *app) refuseInside(store *lifecycle.Store) error {
	name := a.getenv("LOPEN_SESSION_ID")
	if name == "" {
		return nil
	}
	id, err := store.Resolve(name)
	if err != nil || id.String() != name {
		return nil //nolint:nilerr // another project's run
	}
	return fmt.Errorf("refused inside the run of session %s: lopen itself keeps its plan and its state; do the task only", name)
}

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
