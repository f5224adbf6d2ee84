package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// atDash parts the words of a command line at --.
func atDash(cmd *cobra.Command, args []string) (before, after []string) {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:]
	}
	return args, nil
}

// putDashes says to put -- before the agent's command, with the line to type: it was
// typed behind the module, or in its place. "" means that it was not.
func (a *app) putDashes(cmd *cobra.Command) string {
	words := cmd.Flags().Args() // up to a flag that is not known
	at := 1
	if len(words) == 1 && !a.planned(words[0]) && child.Look(words, ".", a.environ) == nil {
		at = 0
	}
	if len(words) <= at || slices.Contains(a.args, "--") {
		return ""
	}
	i := wordAt(cmd.Flags(), a.args, at+1) // the first one is run
	return "put -- before the command:\n  " + plain.Quote(slices.Concat([]string{"lopen"}, a.args[:i], []string{"--"}, a.args[i:])...)
}

// planned says whether there is a plan of a module.
func (a *app) planned(module string) bool {
	project, err := a.project()
	if err != nil || session.ValidateModule(module) != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(project, filepath.FromSlash(lifecycle.PlanPath(module))))
	return err == nil
}

// wordAt is the index of the n-th argument that is no flag and no value of one.
func wordAt(flags *pflag.FlagSet, args []string, n int) int {
	for i := 0; i < len(args); i++ {
		name, long := strings.CutPrefix(args[i], "--")
		short, dash := strings.CutPrefix(args[i], "-")
		var flag *pflag.Flag
		switch {
		case long && !strings.Contains(name, "="):
			flag = flags.Lookup(name)
		case long, dash && len(short) > 1:
		case dash && len(short) == 1:
			flag = flags.ShorthandLookup(short)
		default:
			if n--; n < 0 {
				return i
			}
		}
		if flag != nil && flag.NoOptDefVal == "" {
			i++ // its value
		}
	}
	return len(args)
}
