package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/histories"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/scratch"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/writer/plain"
)

// imported is what --json prints of session import --from.
type imported struct {
	Found    int                 `json:"found"`    // histories of this project, or in PATH
	Sessions []*histories.Result `json:"sessions"` // those with something new, and those that failed
	Moved    []movedHistories    `json:"moved,omitempty"`
	// Others is how many histories are of other folders.
	Others  int      `json:"others,omitempty"`
	NotRead []string `json:"notRead,omitempty"`
	// Trashed are the sessions in the trash whose histories were left alone, and Old is how many others were,
	// since import_retention would not keep them.
	Trashed []string `json:"trashed,omitempty"`
	Old     int      `json:"old,omitempty"`
	from    []string // where was looked
}

// movedHistories are those of a folder that is gone and had the name of this project's.
type movedHistories struct {
	Cwd       string `json:"cwd"`
	Histories int    `json:"histories"`
	Path      string `json:"path"` // that takes them in
}

// importFrom takes the histories of an agent into the project's store.
func (a *app) importFrom(ctx context.Context, agent string, args []string) error {
	paths, err := a.historyPaths(agent, args)
	if err != nil {
		return err
	}
	temp, err := scratch.New()
	if err != nil {
		return err
	}
	defer temp.Close()
	library, err := agents.Open(ctx, agent, temp.Path(), paths...)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer library.Close()
	if len(args) > 0 {
		if err := onlyOf(library, agent, args[0]); err != nil {
			return err
		}
	}
	report := &imported{Sessions: []*histories.Result{}, from: paths}
	for _, err := range library.Left {
		report.NotRead = append(report.NotRead, err.Error())
	}
	if len(library.Histories) > 0 {
		return a.importLibrary(ctx, agent, library, len(args) == 0, report)
	}
	err = a.importAll(ctx, agent, func(func(*histories.Result, error) bool) {}, report)
	if err == nil && len(library.Left) > 0 {
		err = noneRead(agent, library.Left[0])
	}
	return err
}

// noneRead says that no history of an agent can be read. Of one that lopen may not read it hides the class of the error,
// whose advice is to make the path writable.
func noneRead(agent string, why error) error {
	if errors.Is(why, fs.ErrPermission) {
		return fmt.Errorf("no history of %s can be read: %v; who calls lopen needs the right to read it", agent, why) //nolint:errorlint // see above
	}
	return fmt.Errorf("no history of %s can be read: %w", agent, why)
}

// historyPaths is where the histories are looked for: in the agent's own folders, if no path is given.
func (a *app) historyPaths(agent string, args []string) ([]string, error) {
	if len(args) > 0 && args[0] == "" {
		return nil, usagef("PATH is empty: give a file or a folder, . for this one, or no PATH for the sessions of this project")
	}
	home, _ := a.userHome() // it is not needed where a variable says more
	paths, err := agents.Folders(agent, home, a.getenv)
	if err != nil {
		return nil, usagef("--from: %w", err)
	}
	if len(args) > 0 {
		return args, nil
	}
	return paths, nil
}

// importLibrary takes histories into the project's store: with ours, those of this project.
func (a *app) importLibrary(ctx context.Context, agent string, library *agents.Library, ours bool, report *imported) error {
	_, values, err := a.here()
	if err != nil {
		return err
	}
	policy, err := storePolicy(values)
	if err != nil {
		return err
	}
	return a.changeStore(policy, a.create, func(project string, store *lifecycle.Store) error {
		index, err := histories.NewIndex(store)
		if err != nil {
			return err
		}
		all := library.Histories
		if ours {
			all = a.historiesOf(ctx, project, func(h *agents.History) bool { return index.Find(store, h.Agent, h.ID) != nil }, all, report)
		}
		report.Found = len(all)
		report.Others = len(library.Histories) - len(all)
		if all, err = staying(store, index, values.ImportRetention, all, report); err != nil {
			return err
		}
		return a.importAll(ctx, agent, histories.All(ctx, store, index, all), report)
	})
}

// staying leaves out the histories without a session that would not stay: those of sessions in the trash, and
// those that are not among the newest, if keep is not 0.
func staying(store *lifecycle.Store, index histories.Index, keep int, all []agents.History, report *imported) ([]agents.History, error) {
	trash, err := store.Trash()
	if err != nil {
		return nil, err
	}
	var left []agents.History
	for i, h := range all {
		module := agents.Module(h.Agent, h.ID)
		in := slices.IndexFunc(trash, func(t lifecycle.Retired) bool {
			return t.ID.Module == module && store.TrashStandsFor(t.ID, h.ID)
		})
		switch old := keep > 0 && len(all)-i > keep; {
		case in < 0 && !old || index.Find(store, h.Agent, h.ID) != nil:
			left = append(left, h)
		case in >= 0:
			report.Trashed = append(report.Trashed, trash[in].ID.String())
		default:
			report.Old++
		}
	}
	return left, nil
}

// onlyOf leaves out the files in a library that are none of its agent's. It fails if nothing is left.
func onlyOf(l *agents.Library, agent, path string) error {
	l.Histories = slices.DeleteFunc(l.Histories, func(h agents.History) bool {
		_, err := h.Head()
		if err != nil {
			l.Left = append(l.Left, err)
		}
		return err != nil
	})
	switch {
	case len(l.Histories) > 0:
		return nil
	case len(l.Left) > 0:
		more := ""
		if n := len(l.Left) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return fmt.Errorf("no history of %s in %s can be read: %w%s", agent, path, l.Left[0], more)
	}
	return fmt.Errorf("no history of %s in %s: %w", agent, path, lifecycle.ErrNotFound)
}

// importAll takes histories in, and tells of each. One that cannot be taken does not keep the others
// back.
func (a *app) importAll(ctx context.Context, agent string, all iter.Seq2[*histories.Result, error], report *imported) error {
	var failed []error
	var taken []string
	for res, err := range all {
		switch {
		case res.Made || res.Messages+res.Events > 0 || err != nil:
			report.Sessions = append(report.Sessions, res)
			a.showTaken(res, err)
		case res.Report != nil:
			for _, p := range res.Report.Places {
				report.NotRead = append(report.NotRead, fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Why))
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: the same command goes on: %w", ctx.Err())
		}
		if storageFailed(err) {
			return err
		}
		if err = busyAdvice(err); err != nil {
			failed = append(failed, err)
		} else if res.Made || res.Messages+res.Events > 0 {
			taken = append(taken, res.Session)
		}
	}
	if a.out.machine() {
		return errors.Join(append(failed, a.printJSON(report))...)
	}
	a.showImported(agent, report, taken)
	return errors.Join(failed...)
}

// busyAdvice says what to do about a session that another import has. Of one that an agent's turn
// has, hint says it.
func busyAdvice(err error) error {
	var busy *lifecycle.BusyError
	if errors.As(err, &busy) && hint(err) == "" {
		return fmt.Errorf("another lopen imports it; try again: %w", err)
	}
	return err
}

// showTaken tells of one history.
func (a *app) showTaken(res *histories.Result, err error) {
	if a.out.machine() {
		return
	}
	if res.Session != "" && err == nil {
		fmt.Fprintf(a.stdout, "%s  %s, %s\n", res.Session, plain.Some(res.Messages, "new message"), plain.Some(res.Events, "event"))
	}
	if res.Report == nil {
		return
	}
	for _, p := range res.Report.Places {
		fmt.Fprintf(a.stderr, "%s:%d: damaged, %d bytes at %d: %s\n", shown(p.Path), p.Line, p.Bytes, p.Offset, plain.Line(p.Why))
	}
	if more := res.Report.Bad - len(res.Report.Places); more > 0 {
		fmt.Fprintf(a.stderr, "%s: %s more damaged\n", shown(res.Path), plain.Some(more, "line"))
	}
	for _, path := range res.Report.Rewritten {
		fmt.Fprintf(a.stderr, "%s: it was rewritten since; what is new in it was taken\n", shown(path))
	}
	if n := res.Report.Backwards; n > 0 {
		fmt.Fprintf(a.stderr, "%s: %s than the one before: the order of the file counts\n", shown(res.Path), plain.Some(n, "message")+" older")
	}
	if res.TooLarge > 0 {
		fmt.Fprintf(a.stderr, "%s: %s too large to be stored\n", shown(res.Path), plain.Some(res.TooLarge, "record"))
	}
}

// showImported tells what was found, and which sessions have something new.
func (a *app) showImported(agent string, report *imported, taken []string) {
	unknown := map[string]int{}
	for _, s := range report.Sessions {
		if s.Report != nil {
			for name, n := range s.Report.Unknown {
				unknown[name] += n
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		fmt.Fprintf(a.stderr, "unknown: %s of type %s, kept as they are\n", plain.Some(unknown[name], "record"), plain.Line(name))
	}
	for _, why := range report.NotRead {
		fmt.Fprintf(a.stderr, "not read: %s\n", plain.Line(why))
	}
	for _, m := range report.Moved {
		fmt.Fprintf(a.stderr, "%s is gone and had %s of %s; if it was this project, type: lopen session import --from %s\n",
			shown(m.Cwd), plain.Some(m.Histories, "session"), agent, plain.Quote(agent, m.Path))
	}
	for _, id := range report.Trashed {
		fmt.Fprintf(a.stderr, "%s is in the trash and was not taken again; it comes back by: lopen session restore %s\n", id, plain.Quote(id))
	}
	if report.Old > 0 {
		fmt.Fprintf(a.stderr, "%s left out: import_retention would not keep them\n", plain.Some(report.Old, "older session"))
	}
	fmt.Fprintf(a.stderr, "%s of %s, %d with something new\n", plain.Some(report.Found, "session"), agent, len(taken))
	if report.Found+report.Others == 0 {
		fmt.Fprintf(a.stderr, "looked in %s\n", quoted(report.from))
	}
	if report.Found == 0 && report.Others > 0 && len(report.Moved) == 0 {
		fmt.Fprintf(a.stderr, "%s of other folders found in %s: if some are of this project, give their file or folder as PATH\n",
			plain.Some(report.Others, "session"), quoted(report.from))
	}
	if len(taken) > 0 {
		fmt.Fprintf(a.stderr, "look at one: lopen session show %s --messages\n", plain.Quote(taken[len(taken)-1]))
	}
}
