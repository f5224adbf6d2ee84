package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/mount"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

func newFleet(a *app) *cobra.Command {
	return group("fleet", "Keep sessions in PostgreSQL: they outlive this machine",
		newFleetJoin(a), newFleetStatus(a), newFleetLeave(a), newFleetDoctor(a), newFleetSQL(a))
}

// fleetFlag is the flag of commands that look into the fleet in place of this machine.
func fleetFlag(cmd *cobra.Command, set *bool) {
	cmd.Flags().BoolVar(set, "fleet", false, "of the fleet in place of this machine: lopen fleet join")
}

// A joining is what is remembered of the fleet that a project's folder has joined. It is among the
// user's own state: what comes with a project cannot say where its files go.
type joining struct {
	Folder  string    `json:"folder"`  // its real path
	URL     string    `json:"url"`     // key=value, without a password
	Project string    `json:"project"` // the same on all machines
	Site    string    `json:"site"`    // random; of this folder
	At      time.Time `json:"at"`
}

// maxJoining bounds the file, in bytes.
const maxJoining = 64 << 10

// joiningFile returns the path of a folder's file, and the folder's real path.
func (a *app) joiningFile(folder string) (path, actual string, err error) {
	if actual, err = filepath.EvalSymlinks(folder); err != nil {
		return "", "", fmt.Errorf("find the fleet of %s: %w", shown(folder), err)
	}
	dir, err := trust.DefaultDir(a.getenv)
	return filepath.Join(dir, fmt.Sprintf("fleet-%x.json", sha256.Sum256([]byte(actual)))), actual, err
}

// joined returns the fleet that a project has joined, or nil.
func (a *app) joined(folder string) (*joining, error) {
	path, actual, err := a.joiningFile(folder)
	if err != nil {
		return nil, err
	}
	data, err := owner.ReadFile(path, maxJoining)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var j joining
	if err == nil {
		err = strictjson.Unmarshal(data, &j)
	}
	if err == nil && j.Folder != actual {
		err = errors.New("it is about another folder")
	}
	if err != nil {
		return nil, fmt.Errorf("read which fleet was joined: %s: %w; lopen fleet join writes it anew", shown(path), err)
	}
	return &j, nil
}

// remember writes which fleet a folder has joined.
func (a *app) remember(j joining) error {
	path, actual, err := a.joiningFile(j.Folder)
	if err != nil {
		return err
	}
	j.Folder = actual
	data, err := strictjson.MarshalLines(j)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = trust.Replace(path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("remember the fleet: %w", err)
	}
	return nil
}

// fleetOf opens the fleet that a project has joined. It does not connect. It is nil if the project has
// joined none.
func (a *app) fleetOf(folder string) (*fleet.Fleet, error) {
	j, err := a.joined(folder)
	if j == nil || err != nil {
		return nil, err
	}
	joined := func() bool {
		now, err := a.joined(folder)
		return err != nil || now != nil && *now == *j // only what was left or joined anew says that it was left
	}
	return fleet.Open(a.fleetOptions(fleet.Options{Joined: joined, URL: j.URL, Project: j.Project, Site: j.Site}))
}

// sendsTo is the database that gets what a project keeps, "" for none.
func (a *app) sendsTo(project string) string {
	f, err := a.fleetOf(project)
	if f == nil || err != nil {
		return "" // who opens it says so
	}
	defer f.Close()
	return plain.Line(f.Where())
}

// inFleet runs fn with the fleet that the project has joined.
func (a *app) inFleet(fn func(project string, f *fleet.Fleet) error) error {
	project, err := a.project()
	if err != nil {
		return err
	}
	f, err := a.fleetOf(project)
	if err != nil {
		return err
	}
	if f == nil {
		return &loop.Exit{Code: loop.ExitUser, Reason: "this project has joined no fleet: lopen fleet join URL"}
	}
	defer f.Close()
	return fleetError(f, fn(project, f))
}

// fleetError says what is wrong with the database, where an error is about it.
func fleetError(f *fleet.Fleet, err error) error {
	var exit *loop.Exit
	var usage *usageError
	var storage *lifecycle.Error
	if err == nil || errors.As(err, &exit) || errors.As(err, &usage) || errors.As(err, &storage) {
		return err
	}
	var held *fleet.HeldError
	switch {
	case errors.As(err, &held):
		return &loop.Exit{Code: loop.ExitBusy, Reason: err.Error()}
	case errors.Is(err, fleet.ErrNotFound):
		return fmt.Errorf("%w: %w", err, lifecycle.ErrNotFound)
	case fleet.Foreign(err):
		return fmt.Errorf("fleet %s: %s", f.Where(), fleet.Explain(err))
	}
	return err
}

// readFleet fetches a session of the fleet into a temporary store, for a command that only reads.
func (a *app) readFleet(ctx context.Context, args []string, fn func(f *fleet.Fleet, x *fleet.Found, store *lifecycle.Store, id session.ID) error) error {
	return a.inFleet(func(_ string, f *fleet.Fleet) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		x, err := f.Find(ctx, name)
		if err != nil {
			return err
		}
		return a.fetched(ctx, f, &x, func(store *lifecycle.Store) error { return fn(f, &x, store, x.ID) })
	})
}

// fetched fetches a session into a temporary store.
func (a *app) fetched(ctx context.Context, f *fleet.Fleet, x *fleet.Found, fn func(*lifecycle.Store) error) error {
	signal.Ignore(syscall.SIGPIPE) // who stops reading would leave the folder behind
	dir, err := os.MkdirTemp("", "lopen-fleet-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { _ = mount.RemoveAll(dir) }()
	store, _, err := lifecycle.Init(dir, lifecycle.Options{Logger: a.logger, Command: a.invoked})
	if err != nil {
		return err
	}
	defer release(store)
	if err := f.FetchInto(ctx, x, store); err != nil {
		return err
	}
	if a.fetchedFrom = "it ran on " + x.Host + " until " + ago(x.Ago); x.Held {
		a.fetchedFrom = "it runs on " + x.Host
	}
	if err = fn(store); errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	return err
}
