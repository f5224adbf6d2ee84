package main

import (
	"bufio"
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

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
)

// app is what every command shares: the streams, the global flags, and the
// project that they lead to. Owned by the goroutine that executes the command.
type app struct {
	stdin          *os.File
	lines          *bufio.Reader // of stdin, once something was asked
	stdout, stderr io.Writer
	environ        []string

	dir       string
	logLevel  string
	logFormat string
	logFile   string
	color     string

	logger  zerolog.Logger
	logSink io.Closer
	out     outputFlags
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "lopen",
		Short:         "Run a coding agent over the tasks of a plan, and keep what it does",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
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
		newInit(a), newRun(a),
		group("session", "List, show, resume, check and tidy sessions",
			newSessionList(a), newSessionShow(a), newSessionResume(a), newSessionPause(a), newSessionFork(a), newSessionLog(a), newSessionWatch(a), newSessionVerify(a), newSessionRecover(a),
			newSessionRename(a), newSessionPin(a, true), newSessionPin(a, false), newSessionDelete(a), newSessionRestore(a), newSessionPrune(a)),
		group("plan", "Show, create and edit plans", newPlanShow(a), newPlanCreate(a), newPlanTick(a, true), newPlanTick(a, false),
			newPlanAdd(a), newPlanRemove(a), newPlanMove(a), newPlanRename(a), newPlanMark(a)),
		group("section", "List and show the sections of a document, and what drifted", newSectionList(a), newSectionShow(a), newSectionDrift(a)),
		group("research", "List and write research documents", newResearchList(a), newResearchNew(a)),
		group("cache", "Warm, look at and clear what is kept of documents", newCacheWarm(a), newCacheStatus(a), newCacheClear(a)),
		newAssess(a),
		group("files", "Record the project's files, and list what changed since", newFilesRecord(a), newFilesChanged(a)),
		group("config", "Show and set the settings", newConfigShow(a), newConfigSet(a)),
		group("checkpoint", "Keep the project's files, compare them, bring them back",
			newCheckpointCreate(a), newCheckpointList(a), newCheckpointShow(a), newCheckpointDiff(a), newCheckpointRewind(a)),
		newUndo(a), newDoctor(a), newVersion(a),
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
	sink := a.stderr
	if a.logFile != "" {
		f, err := os.OpenFile(a.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("open log file: %w", err)
		}
		sink, a.logSink = f, f
	}
	switch a.logFormat {
	case "json":
	case "console":
		sink = zerolog.ConsoleWriter{Out: sink, NoColor: a.logFile != "" || !a.colored(sink), TimeFormat: "15:04:05.000"}
	default:
		return usagef("--log-format %q: give console or json", a.logFormat)
	}
	zerolog.TimeFieldFormat = time.RFC3339Nano
	a.logger = zerolog.New(zerolog.SyncWriter(sink)).Level(lvl).With().Timestamp().Logger()
	if !asked && a.logFile == "" {
		a.logger = a.logger.Hook(once{})
	}
	switch a.color {
	case "auto", "always", "never":
		return nil
	}
	return usagef("--color %q: give auto, always or never", a.color)
}

// colored says whether output to w is coloured: --color, then NO_COLOR, then
// whether w is a terminal.
func (a *app) colored(w io.Writer) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	return a.getenv("NO_COLOR") == "" && isTerminal(w)
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

// interactive says whether there is a person to ask.
func (a *app) interactive() bool { return isTerminal(a.stdin) && isTerminal(a.stderr) }

func (a *app) getenv(key string) string {
	for i := len(a.environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.environ[i], key+"="); ok {
			return v
		}
	}
	return ""
}

// start is the folder that the command was called in or sent to.
func (a *app) start() (string, error) {
	dir := a.dir
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return "", usagef("-C %s: it is not a folder", dir)
	}
	if err != nil {
		return "", usagef("-C: %w", err)
	}
	return dir, nil
}

// project finds the project's folder: the nearest one upwards that holds a
// .lopen, else the top of the git work tree, else the current one. The home
// folder and the root are taken only when -C names them.
func (a *app) project() (string, error) {
	start, err := a.start()
	if err != nil {
		return "", err
	}
	forbidden := func(dir string) bool {
		if a.dir != "" && dir == start {
			return false
		}
		home := a.getenv("HOME")
		return dir == filepath.Dir(dir) || (home != "" && sameDir(dir, home))
	}
	for _, mark := range []string{lifecycle.Dir, ".git"} {
		for dir := start; ; dir = filepath.Dir(dir) {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil && !forbidden(dir) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if forbidden(start) {
		return "", usagef("%s is taken as a project only when it is named: lopen -C %s ...", start, start)
	}
	return start, nil
}

func sameDir(a, b string) bool {
	ai, aerr := os.Stat(a)
	bi, berr := os.Stat(b)
	return aerr == nil && berr == nil && os.SameFile(ai, bi)
}

// open opens the project's store for a command that needs one.
func (a *app) open() (*lifecycle.Store, error) {
	project, err := a.project()
	if err != nil {
		return nil, err
	}
	return lifecycle.Open(project, a.storeOptions())
}

func (a *app) storeOptions() lifecycle.Options {
	return lifecycle.Options{Logger: a.logger, Command: "lopen " + strings.Join(os.Args[min(1, len(os.Args)):min(3, len(os.Args))], " ")}
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
	return v, nil
}

func (a *app) userConfig() ([]byte, error) {
	dir := a.getenv("XDG_CONFIG_HOME")
	if dir == "" {
		d, err := os.UserConfigDir()
		if err != nil {
			return nil, nil //nolint:nilerr // a user without a home has no config
		}
		dir = d
	}
	data, err := os.ReadFile(filepath.Join(dir, "lopen", "config.json"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return data, err
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
