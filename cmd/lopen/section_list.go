package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newSectionList(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "list FILE",
		Short: "List the sections of a Markdown file",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o, err := a.outlineOf(args[0])
			if err != nil {
				return err
			}
			rows := []sectionRow{}
			for _, s := range o.Sections() {
				rows = append(rows, rowOf(s))
			}
			if a.out.machine() {
				return a.printJSON(rows)
			}
			if err := printMeta(a.stdout, o); err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			if len(rows) > 0 {
				fmt.Fprintln(w, "LINES\tBYTES\tTOKENS\tSECTION\tANCHOR")
			}
			for _, r := range rows {
				fmt.Fprintf(w, "%d-%d\t%d\t~%d\t%s%s\t#%s\n", r.FirstLine, r.LastLine, r.Bytes, r.Tokens, strings.Repeat("  ", r.Level-1), firstLine(r.Header), r.Anchor)
			}
			return w.Flush()
		},
	})
}

// printMeta prints what the front matter says in one value each: name, description
// and the like.
func printMeta(w io.Writer, o *cache.Outline) error {
	fields, err := o.Meta()
	if err != nil {
		fmt.Fprintf(w, "(%v)\n\n", firstLine(err.Error()))
		return nil
	}
	printed := false
	for _, f := range fields {
		switch f.Value.(type) {
		case string, bool, int64, uint64, float64:
			fmt.Fprintf(w, "%s: %s\n", plain.Line(f.Name), firstLine(fmt.Sprint(f.Value)))
			printed = true
		}
	}
	if printed {
		_, err = fmt.Fprintln(w)
	}
	return err
}
