package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newFleetJoin(a *app) *cobra.Command {
	var yes bool
	var name string
	cmd := &cobra.Command{
		Use:   "join [URL]",
		Short: "Keep this project's sessions in a PostgreSQL database as well",
		Long: `Keep this project's sessions in a PostgreSQL database as well, from now on, for this user and
this folder. What is done goes to the local disk first, as ever, and is sent in the background:
no run waits for the database, and while it is away the log on the disk is the backlog.

URL is what psql takes: postgres://USER@HOST/DB, several hosts for a failover, or key=value.
Without it PGSERVICE, PGHOST and the like say where. Unless sslmode says otherwise, a server on
another machine has to prove who it is (verify-full; sslrootcert=FILE for an authority of your own).

A password is never kept: PGPASSFILE, ~/.pgpass, a service file, PGPASSWORD or LOPEN_FLEET_PASSWORD
has it; one in the URL is used this once. What lopen starts is not told of the fleet's PGPASSWORD;
with LOPEN_FLEET_PASSWORD, PGPASSWORD is the project's own.

The tables are made if there are none and this user may; else somebody who may runs what
lopen fleet sql prints. Other machines find the project by its root commit and its folder in
the repository; --project gives it a name where there is none, as in a shallow clone.`,
		Example: `  lopen fleet join 'postgres://ci@db1,db2/lopen'
  PGSERVICE=lopen lopen fleet join --project shop`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			url := ""
			if len(args) > 0 {
				url = args[0]
			}
			return a.join(cmd.Context(), url, name, yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().StringVar(&name, "project", "", "the `NAME` of the project on all machines, in place of its root commit")
	return cmd
}

func (a *app) join(ctx context.Context, url, name string, yes bool) error {
	project, name, err := a.projectName(ctx, name)
	if err != nil {
		return err
	}
	if url == "" && a.getenv("PGHOST") == "" && a.getenv("PGSERVICE") == "" {
		return usagef("give a URL, like postgres://USER@HOST/DATABASE, or set PGSERVICE or PGHOST")
	}
	f, err := fleet.Open(a.fleetOptions(fleet.Options{URL: url, Project: name}))
	if err != nil {
		return usagef("%w; give a URL like postgres://USER@HOST/DATABASE", err)
	}
	defer f.Close()
	if err := a.makeTables(ctx, f, yes); err != nil {
		return err
	}
	kept, left := f.Kept()
	if err := a.rememberJoining(project, name, kept); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "joined %s as project %s\n  send what is here already: lopen session push --all\n", f.Where(), plain.Line(name))
	a.sayPasswords(kept, left)
	for _, c := range f.Doctor(ctx) {
		if !c.OK && c.Name != fleet.CheckFailover {
			fmt.Fprintf(a.stderr, "warning: %s: %s; %s\n", c.Name, plain.Line(c.Found), plain.Line(c.Mend))
		}
	}
	return nil
}

// sayPasswords says where the passwords come from that are not kept, and whom PGPASSWORD is kept from.
func (a *app) sayPasswords(kept string, left []string) {
	for _, what := range left {
		say := "the password is not kept: put HOST:PORT:DATABASE:USER:PASSWORD into ~/.pgpass (mode 0600), or into the file that PGPASSFILE names"
		if what == "sslpassword" {
			say = "the sslpassword is not kept: it comes from " + sslVariable + ", or sslpassword= in a service file"
		}
		fmt.Fprintln(a.stderr, say)
	}
	if a.usesPassword(kept) && a.secret(passwordVariable) != "" {
		fmt.Fprintf(a.stderr, "%s is the fleet's: agents, checks and hooks of this project are not told of it; where they need one of their own, %s has the fleet's\n", passwordVariable, fleetVariable)
	}
}

// makeTables asks whether to join, unless that was said, and makes the tables or brings them up to date.
func (a *app) makeTables(ctx context.Context, f *fleet.Fleet, yes bool) error {
	schema, err := f.Schema(ctx)
	if err != nil {
		return &loop.Exit{Code: loop.ExitFailed, Reason: fmt.Sprintf("%s: %s", f.Where(), fleet.Explain(err))}
	}
	if schema.Version > 0 {
		if err := a.sayOthers(ctx, f); err != nil {
			return err
		}
	}
	if !yes {
		if err := a.consent(ctx, f); err != nil {
			return err
		}
	}
	was, err := f.Migrate(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("make the tables in %s: %s\n  or let somebody who may do it: lopen fleet sql | psql DATABASE", f.Where(), fleet.Explain(err))
	case schema.LeastClient > fleet.SchemaVersion:
		return fleetError(f, fleet.ErrNewSchema)
	case was.Version == 0:
		fmt.Fprintf(a.stderr, "made the tables in %s\n", f.Where())
	case was.Version < fleet.SchemaVersion:
		fmt.Fprintf(a.stderr, "brought the tables in %s from version %d to %d\n", f.Where(), was.Version, fleet.SchemaVersion)
	}
	return nil
}

// sayOthers names the other projects in the database.
func (a *app) sayOthers(ctx context.Context, f *fleet.Fleet) error {
	names, more, err := f.Others(ctx)
	if err != nil || len(names) == 0 {
		return fleetError(f, err)
	}
	if more {
		names = append(names, "and more")
	}
	fmt.Fprintf(a.stderr, "%s has other projects: %s\n  who ships to it may read and change all of them: teams that distrust each other take a database each\n", f.Where(), plain.Line(strings.Join(names, ", ")))
	return nil
}

// rememberJoining remembers the fleet. url is what is kept of its connection string.
func (a *app) rememberJoining(project, name, url string) error {
	site := rand.Text()
	if old, err := a.joined(project); err == nil && old != nil { // its checkpoints are there under this one
		site = old.Site
	}
	return a.remember(joining{Folder: project, URL: url, Project: name, Site: site, At: time.Now().UTC().Truncate(time.Second)})
}

// projectName returns the project's folder, and its name on all machines: the one that was given, or its
// root commit and its folder in the repository.
func (a *app) projectName(ctx context.Context, given string) (project, name string, err error) {
	if project, err = a.project(); err != nil || given != "" {
		return project, given, err
	}
	id := a.identity(ctx, project)
	if id.Root == "" {
		return "", "", usagef("%s has no root commit that tells other machines which project it is (a shallow clone has none): give it a name, --project NAME", shown(project))
	}
	return project, id.Root + ":" + id.Path, nil
}

// consent says what will leave this machine, and asks.
func (a *app) consent(ctx context.Context, f *fleet.Fleet) error {
	what := fmt.Sprintf(`%s will get, from now on, of this project:
  the logs of its sessions, with messages and outputs, as they are here: credentials hidden
  the plans of its modules
  the project's files at each checkpoint, as they are: nothing is hidden in them
Whoever may read its tables can read all this.`, f.Where())
	if !a.interactive() {
		return &loop.Exit{Code: loop.ExitUser, Reason: what + "\nto agree without a terminal: --yes"}
	}
	fmt.Fprintln(a.stderr, what)
	yes, err := a.agreed(ctx, "Join?")
	if err == nil && !yes {
		err = errors.New("nothing was joined")
	}
	return err
}

func newFleetLeave(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "leave",
		Short: "Send nothing more to the fleet; what is there stays",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			project, err := a.project()
			if err != nil {
				return err
			}
			return a.leave(cmd.Context(), project)
		},
	}
}

func newFleetSQL(a *app) *cobra.Command {
	var roles bool
	cmd := &cobra.Command{
		Use:   "sql",
		Short: "Print the statements that make the tables",
		Long: `Print the statements that make the tables, for somebody who may: lopen fleet sql | psql DATABASE.
--roles prints those that make two roles for least privilege: lopen_runner, who ships and takes
sessions and deletes those that nobody holds, and lopen_reader, who looks.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.stdout, fleet.SQL(roles))
			return err
		},
	}
	cmd.Flags().BoolVar(&roles, "roles", false, "the roles and their rights, once the tables are there")
	return cmd
}
