package main

import (
	"context"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// givenUpRow is a rewind that was given up as --json prints it.
type givenUpRow struct {
	To      string   `json:"to"`
	Before  string   `json:"before"`
	Changed []string `json:"changed"` // what the rewind has changed
	Left    []string `json:"left"`    // what it has not
	Other   []string `json:"other"`   // what is neither as it was nor as the rewind wanted it
	Unknown string   `json:"unknown,omitempty"`
}

// giveUp ends a rewind that was cut off. It needs neither the checkpoints nor the files, so that no
// session stays locked.
func (a *app) giveUp(ctx context.Context, name string) error {
	return a.editNamed([]string{name}, func(store *lifecycle.Store, id session.ID) (err error) {
		var up rewind.GivenUp
		if err := afterHook(ctx, func() (err error) { up, err = store.GiveUpRewind(ctx, id); return err }); err != nil {
			return err
		}
		if a.out.machine() {
			row := givenUpRow{up.To, up.Before, append([]string{}, up.Changed...), append([]string{}, up.Left...), append([]string{}, up.Other...), ""}
			if up.Unknown != nil {
				row.Unknown = up.Unknown.Error()
			}
			return a.printJSON(row)
		}
		l := lister{w: a.stdout}
		for _, group := range []struct {
			what  string
			paths []string
		}{{"rewound", up.Changed}, {"not rewound", up.Left}, {"neither", up.Other}} {
			for _, path := range group.paths {
				l.add(group.what, fmt.Sprintf("%-11s %s", group.what, shown(path)))
			}
			l.more()
		}
		if up.Unknown != nil {
			fmt.Fprintf(a.stdout, "which files it has changed is not known: %s\n", plain.Line(up.Unknown.Error()))
		}
		fmt.Fprintf(a.stderr, "the rewind of session %s is given up; no file was changed", id)
		if len(up.Changed)+len(up.Other) > 0 {
			fmt.Fprintf(a.stderr, "; for the files as they were before it: lopen checkpoint rewind %s --session %s --scope files", plain.Quote(shortID(up.Before)), id)
		}
		fmt.Fprintln(a.stderr)
		return nil
	})
}
