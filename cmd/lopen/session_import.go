package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newSessionImport(a *app) *cobra.Command {
	var keys *keyFlags
	var from string
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "import FILE | --from AGENT [PATH]",
		Short: "Take in sessions of a file of session export, or an agent's own histories",
		Long: `Take the sessions of a file of session export into this project, with their checkpoints,
plan, specification and research. FILE may be - for stdin. Everything is checked before
anything is visible. A session whose ID is taken gets another one; one that is here already
stays. Nothing of the project is overwritten. lopen session resume goes on with one, and
asks before it runs a command that was never approved here.

With --from, take in the sessions of an agent: those in this project, or all in PATH, a file
or a folder. Again, it adds what is new. What the agent has is only read.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("from") {
				return a.importFrom(cmd.Context(), from, args)
			}
			if len(args) == 0 {
				return usagef("give a FILE of session export, or --from AGENT; see `%s --help`", cmd.CommandPath())
			}
			if info, err := os.Stat(args[0]); err == nil && (info.IsDir() || slices.Contains([]string{".jsonl", ".db"}, filepath.Ext(args[0]))) {
				return usagef("%s is a folder, or an agent's file, and none of session export; to take in an agent's sessions type: %s --from claude|codex|opencode %s",
					shown(args[0]), cmd.CommandPath(), quoted(args))
			}
			return a.openBundle(cmd.Context(), args[0], keys, func(r *bundle.Reader) error {
				return a.initStore(func(_ string, store *lifecycle.Store) error { return a.imports(cmd.Context(), store, r) })
			})
		},
	})
	keys = a.keyFlags(cmd, false)
	cmd.Flags().StringVar(&from, "from", "", "take in the sessions of `AGENT`: claude, codex or opencode")
	cmd.MarkFlagsMutuallyExclusive("from", "key-file")
	cmd.MarkFlagsMutuallyExclusive("from", "key-command")
	return cmd
}

func (a *app) imports(ctx context.Context, store *lifecycle.Store, from carry.Source) error {
	report, err := store.Import(ctx, from)
	if report == nil {
		return err
	}
	if a.out.machine() {
		if perr := a.printJSON(report); err == nil {
			err = perr
		}
		return err
	}
	a.showArrived(report)
	a.showDocuments(report)
	for _, at := range report.Kept {
		fmt.Fprintf(a.stderr, "%s is there again\n", shown(lifecycle.Dir+"/"+at))
	}
	last, unfinished := "", ""
	for _, s := range report.Sessions {
		fmt.Fprintln(a.stdout, s.ID)
		if last = s.ID; s.Status != string(session.StatusComplete) {
			unfinished = s.ID
		}
	}
	a.showProjectFiles(report, last)
	switch {
	case unfinished != "":
		fmt.Fprintf(a.stderr, "go on with: lopen session resume %s\n", plain.Quote(unfinished))
	case last != "":
		fmt.Fprintf(a.stderr, "look at it: lopen session show %s\n", plain.Quote(last))
	}
	return err
}

func (a *app) showDocuments(r *carry.Report) {
	texts := map[string]string{carry.DocumentWritten: "written", carry.DocumentSame: "here already", carry.DocumentDifferent: "here is another one, which stays", carry.DocumentLeft: "not written"}
	for _, d := range r.Documents {
		why := ""
		if d.Why != "" {
			why = ": " + d.Why
		}
		fmt.Fprintf(a.stderr, "%s: %s%s\n", shown(d.Path), texts[d.Became], why)
	}
}

// showProjectFiles says how the project's files differ from what they were, and how to get
// those back.
func (a *app) showProjectFiles(r *carry.Report, id string) {
	f := r.Files
	if f.Listed == 0 {
		return
	}
	fmt.Fprintf(a.stderr, "the project's files: %d as they were, %d different, %d missing", f.Equal, f.Different, f.Missing)
	if f.Equal == f.Listed {
		fmt.Fprintln(a.stderr)
		return
	}
	var names []string
	for _, name := range f.Names {
		names = append(names, shown(name))
	}
	if len(names) < f.Different+f.Missing {
		names = append(names, "...")
	}
	fmt.Fprintf(a.stderr, ": %s\n", strings.Join(names, ", "))
	if r.Checkpoints > 0 && id != "" {
		fmt.Fprintf(a.stderr, "look at what the checkpoints bring back: lopen checkpoint rewind last --session %s --scope files --force --dry-run\n", plain.Quote(id))
	}
}
