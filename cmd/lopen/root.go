package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
)

// app is what every command shares: the streams, the global flags, and the
// project that they lead to. Owned by the goroutine that executes the command.
type app struct {
	stdin          *os.File
	lines          *bufio.Reader // of stdin, once something was asked
	stdout, stderr *terminal.Stream
	args, environ  []string
	secrets        map[string]string // variables that environ has no longer

	invoked   string // what a lock says of who holds it
	dir       string
	logLevel  string
	logFormat string
	logFile   string
	color     string

	logger  zerolog.Logger
	logSink io.Closer
	out     outputFlags

	fetchedFrom string // where the session is that is shown; "" for one of this machine

	begun *repo.Begin // what git ran when the run began that this command is; nil before

	warnedLast string // that an approval could not be kept

	warnedIgnored bool // that the project's config.json holds what it may not

	enclosed func() []enclosing // see above; nil before the command is made
}

func newRoot(a *app) *cobra.Command {
	a.enclosed = sync.OnceValue(a.lookAbove)
	root := &cobra.Command{
		Use:           "lopen",
		Short:         "Run a coding agent over the tasks of a plan, and keep what it does",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			a.invoked = invocation(cmd, args)
			if err := a.startLog(cmd.Flags().Changed("log-level")); err != nil {
				return err
			}
			return a.gate(cmd)
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
		newInit(a), newRun(a), newWork(a), newReport(a), newSearch(a), newSession(a), newPlan(a), newSection(a), newResearch(a), newCache(a), newAssess(a),
		newFiles(a), newTrust(a), newConfig(a), newCheckpoint(a), newBundle(a), newUndo(a), newTransaction(a), newWorktree(a), newBackup(a), newFleet(a), newDoctor(a), newHook(a), newMCP(a), newPlugin(a), newVersion(a), newPromptHelp(), newSkillHelp(),
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

// colored says whether output to s is coloured: --color, then NO_COLOR, then
// whether s is a terminal.
func (a *app) colored(s *terminal.Stream) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	return a.getenv("NO_COLOR") == "" && s.Terminal()
}

// interactive says whether there is a person to ask. An agent can have a terminal of its own.
func (a *app) interactive() bool {
	return isTerminal(a.stdin) && a.stderr.Terminal() && !a.byAgent()
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

func (a *app) getenv(key string) string {
	for i := len(a.environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.environ[i], key+"="); ok {
			return v
		}
	}
	return ""
}

// invocation is the command and what it is about, the module or the session. What else
// was typed may hold a credential, and others read the locks.
func invocation(cmd *cobra.Command, args []string) string {
	name := cmd.CommandPath()
	if len(args) > 0 && cmd.ArgsLenAtDash() != 0 && !(cmd.HasParent() && cmd.Parent().Name() == "fleet") { // a URL may have a password
		name += " " + args[0]
	}
	return name
}
