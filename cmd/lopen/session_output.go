package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// outputRow is an attempt as `session output --json` prints it.
type outputRow struct {
	Iteration int        `json:"iteration"`
	Task      string     `json:"task"`
	Attempt   int        `json:"attempt"`
	Begun     time.Time  `json:"begun"`
	Ended     *time.Time `json:"ended,omitempty"`
	Outcome   string     `json:"outcome"` // as in an attempt's "then", or running, or killed
	Failure   string     `json:"failure,omitempty"`
	Bytes     int64      `json:"bytes"` // of the log
	Path      string     `json:"path"`
	Raw       string     `json:"raw,omitempty"` // paths, where they are kept
	Prompt    string     `json:"prompt,omitempty"`
}

// outputCall is one call of `session output`.
type outputCall struct {
	*app
	store  *lifecycle.Store
	id     session.ID
	task   string // an ID; "" for all
	number int    // of the attempt at the task; 0 for all
	file   output.File
}

func newSessionOutput(a *app) *cobra.Command {
	var name string
	var follow, raw, prompt bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "output [TASK[#N]]",
		Short: "Print what an attempt printed: the newest one, or the one at a task",
		Long: `Print what an attempt printed: the newest one of the newest session, or the newest one
at TASK. #N is the number of the attempt. The output of the check stands below that of the
command. Where more than 16 MiB were printed, a line says how many bytes are left out. Of
attempts that failed the raw output and the prompt are kept as well, with the setting
transcript of all.

` + taskHelp + "\nOne that the plan has no more is found by its ID.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readSession([]string{name}, func(store *lifecycle.Store, id session.ID) error {
				o := outputCall{app: a, store: store, id: id, file: output.Log}
				switch {
				case raw:
					o.file = output.Raw
				case prompt:
					o.file = output.Prompt
				}
				if len(args) > 0 {
					if err := o.parse(args[0]); err != nil {
						return err
					}
				}
				switch {
				case a.out.machine():
					return o.list()
				case follow:
					return o.follow(cmd.Context())
				}
				return o.newest()
			})
		},
	})
	f := cmd.Flags()
	f.StringVar(&name, "session", "", "of the session `ID`, in place of the newest one")
	f.BoolVarP(&follow, "follow", "f", false, "go on with what is printed, and with the next attempt, until the run ends")
	f.BoolVar(&raw, "raw", false, "what the command wrote, as it came, in place of what was shown")
	f.BoolVar(&prompt, "prompt", false, "what the command was given")
	cmd.MarkFlagsMutuallyExclusive("raw", "prompt")
	cmd.MarkFlagsMutuallyExclusive("follow", "prompt")
	return cmd
}

// parse finds the task that is meant: in the plan, or, as that may have changed since,
// among those of which there is output.
func (o *outputCall) parse(typed string) error {
	name := typed
	if at := strings.LastIndexByte(typed, '#'); at >= 0 {
		n, err := strconv.Atoi(typed[at+1:])
		if err != nil || n < 1 {
			return usagef("%q: give the number of an attempt, from 1, after the #", typed)
		}
		name, o.number = typed[:at], n
	}
	all, err := o.store.Outputs(o.id)
	if err != nil {
		return err
	}
	o.task, err = findKnownTask(lastPlan(o.store, o.id.Module), name, func(yield func(string) bool) {
		for _, k := range all {
			if !yield(k.Task) {
				return
			}
		}
	})
	return err
}

// attempts are those that are asked for, the oldest first. An attempt at a unit is one
// at each task within it.
func (o *outputCall) attempts() ([]output.Stored, error) {
	all, err := o.store.Outputs(o.id)
	return slices.DeleteFunc(all, func(k output.Stored) bool {
		other := o.task != "" && k.Task != o.task && !strings.HasPrefix(o.task, k.Task+"/")
		return other || o.number != 0 && k.Attempt.Attempt != o.number
	}), err
}

// noOutput says that there is no output, and why that may be.
func (o *outputCall) noOutput() error {
	of := "session " + o.id.String()
	if o.task != "" {
		of = fmt.Sprintf("task %q in %s", o.task, of)
	}
	return fmt.Errorf("no output is kept of %s: it ran with the setting output off, or before there was one, or the output was pruned; lopen session log %s says what happened: %w",
		of, o.id, lifecycle.ErrNotFound)
}

func (o *outputCall) list() error {
	all, err := o.attempts()
	if err != nil {
		return err
	}
	held := o.held()
	rows := make([]outputRow, len(all))
	for i, k := range all {
		path := func(f output.File) string {
			if !k.Has(f) {
				return ""
			}
			return filepath.Join(o.store.Path(), "sessions", o.id.String(), output.Dir, k.Path(f))
		}
		rows[i] = outputRow{Iteration: k.Iteration, Task: k.Task, Attempt: k.Attempt.Attempt, Begun: k.Begun, Outcome: outcomeOf(k, held && i == len(all)-1),
			Failure: k.Failure, Bytes: k.Bytes, Path: path(output.Log), Raw: path(output.Raw), Prompt: path(output.Prompt)}
		if !k.Ended.IsZero() {
			rows[i].Ended = &k.Ended
		}
	}
	return o.printJSON(rows)
}

// held says whether somebody holds the session.
func (o *outputCall) held() bool {
	owner, err := o.store.Holder(o.id)
	return err != nil || owner != nil
}

// outcomeOf says how an attempt ended. running says that the session is held, and that
// there is no later attempt.
func outcomeOf(k output.Stored, running bool) string {
	switch {
	case k.Outcome != "":
		return k.Outcome
	case running:
		return "running"
	}
	return record.Killed
}
