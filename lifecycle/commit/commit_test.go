package commit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

var day = time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC)

// A place is a store with one session that no other process holds.
type place struct {
	t             *testing.T
	id            session.ID
	project, root writer.FS
	moduleErr     error
}

func newPlace(t *testing.T) *place {
	t.Helper()
	project, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	for _, name := range []string{folder.Store, folder.Store + "/" + folder.Sessions} {
		require.NoError(t, writer.MkdirDurable(project, name))
	}
	root, err := writer.OpenDir(project, folder.Store)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(root.Close(), project.Close())) })
	id, err := session.NewID("auth", day, 1)
	require.NoError(t, err)
	return &place{t: t, id: id, project: project, root: root}
}

func (p *place) Project() writer.FS        { return p.project }
func (p *place) Root() writer.FS           { return p.root }
func (p *place) KeepModule() (bool, error) { return false, p.moduleErr }
func (p *place) Restore() error            { return nil }

func (p *place) Recreate(_ func(session.Mark) error, build func() error) error { return build() }

func (p *place) SetAside(dir writer.FS, name string, _ error) (string, error) {
	return name + "-aside", dir.Rename(name, name+"-aside")
}

func (p *place) Retake(_ error, same func(session.Mark) error) (*commit.Held, error) {
	held, err := p.hold()
	if err != nil {
		return nil, err
	}
	if err := same(held.Contents.At); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return held, nil
}

// hold takes the lease of the session and loads the session.
func (p *place) hold() (*commit.Held, error) {
	dir, err := writer.OpenDir(p.root, folder.Path(p.id))
	require.NoError(p.t, err)
	lease, err := writer.TryLock(dir, folder.LeaseFile, writer.OwnerOf(os.Getpid(), "test"))
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	ld, err := folder.Load(dir, p.id)
	return &commit.Held{Dir: dir, Lease: lease, Contents: ld}, err
}

func (p *place) options() commit.Options {
	return commit.Options{
		Logger: zerolog.Nop(), Now: func() time.Time { return day }, Owner: writer.OwnerOf(os.Getpid(), "test"), Place: p,
		MaxRecord: 4 << 20, Segment: journal.SegmentSize, Reserve: &commit.Reserve{Root: p.Root},
	}
}

// make makes the session.
func (p *place) make() *commit.Committer {
	p.t.Helper()
	st, err := session.New(p.id, day)
	require.NoError(p.t, err)
	c, err := commit.Make(commit.First{State: st, Event: record.EventCreated}, p.options())
	require.NoError(p.t, err)
	return c
}

func (p *place) open() *commit.Committer {
	p.t.Helper()
	held, err := p.hold()
	require.NoError(p.t, err)
	c, err := commit.Open(held, record.EventResumed, p.options())
	require.NoError(p.t, err)
	return c
}

func (p *place) file(name string) string {
	return filepath.Join(p.root.Name(), folder.Path(p.id), name)
}

// in returns a batch that changes the component of st.
func in(t *testing.T, st *session.State, component string) actors.Batch {
	t.Helper()
	e := st.Edit()
	e.Header().Component = component
	next, err := e.State()
	require.NoError(t, err)
	return actors.Batch{State: next}
}

func TestWhatIsCommittedIsReadAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.make()
	for i := range 3 {
		done, err := c.Commit(in(t, c.State(), fmt.Sprint("part ", i)))
		require.NoError(t, err)
		require.EqualValues(t, i+2, done.Seq) // record 1 is the session's first
	}
	require.EqualValues(t, 4, c.Durable().Load().Seq)
	require.NoError(t, c.Close())
	again := p.open()
	require.Equal(t, "part 2", again.State().Header().Component)
	require.Equal(t, uint64(1), again.Epoch()-c.Epoch())
	require.NoError(t, again.Close())
}

func TestOneHolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.make()
	_, err := p.hold()
	require.ErrorIs(t, err, writer.ErrBusy)
	require.NoError(t, c.Close())
	require.NoError(t, p.open().Close())
}

func TestAPublicationShowsTheLastRecord(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.make()
	require.Nil(t, c.Publication(true), "it is shown already")
	_, err := c.Commit(in(t, c.State(), "login"))
	require.NoError(t, err)
	job := c.Publication(true)
	require.NotNil(t, job)
	err = job()
	c.Published(err)
	require.NoError(t, err)
	data, err := os.ReadFile(p.file(folder.StateFile))
	require.NoError(t, err)
	require.Contains(t, string(data), `"component":"login"`)
	require.NoError(t, c.Close())
}

func TestALeaseThatIsLostStopsTheCommit(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.make()
	require.NoError(t, os.Remove(p.file(folder.LeaseFile)))
	next := in(t, c.State(), "login")
	_, err := c.Commit(next)
	require.Equal(t, writer.ClassFenced, writer.ClassOf(err))
	require.NoError(t, c.Recover())
	_, err = c.Commit(next)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// A process that lost its lease does not take it again after another process wrote a record.
func TestALeaseIsNotTakenAgainFromASuccessor(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.make()
	require.NoError(t, os.Remove(p.file(folder.LeaseFile)))
	successor := p.open()
	_, err := successor.Commit(in(t, successor.State(), "theirs"))
	require.NoError(t, err)
	require.NoError(t, successor.Close())
	require.Equal(t, writer.ClassFenced, writer.ClassOf(c.Recover()))
	require.NoError(t, c.Close())
	last := p.open()
	require.Equal(t, "theirs", last.State().Header().Component)
	require.NoError(t, last.Close())
}

func TestARemovedFolderIsMadeAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.make()
	was := c.Durable().Load().Incarnation
	_, err := c.Commit(in(t, c.State(), "login"))
	require.NoError(t, err)
	require.NoError(t, p.root.RemoveAll(folder.Path(p.id)))
	_, err = c.Commit(in(t, c.State(), "logout"))
	require.Equal(t, writer.ClassRemoved, writer.ClassOf(err))
	require.NoError(t, c.Recover())
	require.NotEqual(t, was, c.Durable().Load().Incarnation)
	require.NoError(t, c.Close())
	again := p.open()
	require.Equal(t, "login", again.State().Header().Component)
	require.NoError(t, again.Close())
}

func TestALostModuleStopsTheCommit(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.make()
	p.moduleErr = &writer.Error{Op: "lock module", Class: writer.ClassFenced, Err: errors.New("taken")}
	_, err := c.Commit(in(t, c.State(), "login"))
	require.ErrorIs(t, err, p.moduleErr)
	require.NoError(t, c.Close())
}

func TestWhatAMakeLeftBehindIsCleared(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.make()
	unfinished := folder.Sessions + "/.new-auth-20260214-2"
	require.NoError(t, p.root.Mkdir(unfinished, 0o700))
	for _, name := range []string{unfinished + "/segments", ".tmp-ids.json-1", folder.Sessions + "/.tmp-latest-1", ".tmp-config.json-1"} {
		require.NoError(t, writer.CreateFile(p.root, name, []byte("{"), 0o600))
	}
	require.NoError(t, commit.ClearUnfinished(p.root))
	entries, err := p.root.ReadDir(folder.Sessions)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	temps, err := writer.Temps(p.root, ".")
	require.NoError(t, err)
	require.Equal(t, []string{".tmp-config.json-1"}, temps, "somebody may be writing it: it has another lock")
	require.NoError(t, c.Close())
}

func TestReserve(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := &commit.Reserve{Root: p.Root}
	require.False(t, r.GiveUp())
	r.Keep()
	require.True(t, r.Whole())
	require.True(t, r.GiveUp())
	require.False(t, r.Whole())
}
