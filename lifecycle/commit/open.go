package commit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/journal"
)

// Options of a Committer.
type Options struct {
	Logger zerolog.Logger // of the session
	Now    func() time.Time
	Owner  writer.Owner // the record in the lease
	// Interval, Iterations, Retention, JournalBytes and Compression are those of the store's
	// policy.
	Interval     int
	Iterations   bool
	Retention    int
	JournalBytes int64
	Compression  codec.Options // of closed segments and snapshots
	MaxRecord    int           // in bytes; a larger change becomes a snapshot in history/, which the record names
	Segment      int64         // size in bytes after which a new segment begins
	Reserve      *Reserve
	Place        Place
}

// A Place is the store of a session, as the Committer needs it. Its methods may be called
// from any goroutine.
type Place interface {
	// Project returns the project's folder, and Root the .lopen in it. Root changes when
	// .lopen was removed and made again.
	Project() writer.FS
	Root() writer.FS
	// KeepModule returns nil if the lock of the session's module was never taken or is still
	// held. If its file was removed, KeepModule takes the lock again, and taken is true.
	KeepModule() (taken bool, err error)
	// SetAside moves a readable file from the session's folder, which is dir, to corrupted/ with a note
	// of why, durably, and returns its new path. It keeps the newest versions of each. The error wraps
	// fs.ErrNotExist if the file is not there.
	SetAside(dir writer.FS, name string, why error) (to string, err error)
	// Restore makes removed folders of the store again.
	Restore() error
	// Recreate takes the store lock, moves away what is left of the removed session, and
	// calls build. If there is a session of this ID, Recreate calls another with its Mark,
	// which returns an error if it is another session.
	Recreate(another func(session.Mark) error, build func() error) error
	// Retake takes the lease again and loads the session. It fails if another process holds
	// the session, or if same returns an error for the Mark of the files. lost is why the
	// lease was lost.
	Retake(lost error, same func(session.Mark) error) (*Held, error)
}

// Held is a session's folder and lease, with what was read under the lease.
type Held struct {
	Dir      writer.FS
	Lease    *writer.Lock
	Contents *folder.Contents
}

// Close releases the lease and closes the folder.
func (h *Held) Close() error { return errors.Join(h.Lease.Unlock(), h.Dir.Close()) }

// First says how a new session begins.
type First struct {
	State *session.State
	Event record.Event
	// Share adds the files that the session shares with another one to its folder, whose path
	// below .lopen it gets, and returns the Mark that the session begins with. nil shares
	// nothing.
	Share func(folder string) (session.Mark, error)
	// Others writes further files into the folder; nil writes none.
	Others func(dir writer.FS) error
}

// Make makes a session, durably, and takes its lease. It writes the first record and the
// readable files into a folder with a temporary name, and then renames the folder. The caller
// holds the store lock.
func Make(first First, opts Options) (*Committer, error) {
	c := &Committer{opts: opts, id: first.State.ID(), mark: &atomic.Pointer[Durable]{}}
	if err := c.build(first); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// newPrefix begins the name of a session's folder until it is complete.
const newPrefix = ".new-"

// Unfinished returns the names of the folders of Makes that are in progress or were
// interrupted.
func Unfinished(root writer.FS) (names []string, err error) {
	entries, err := root.ReadDir(folder.Sessions)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) {
			names = append(names, folder.Sessions+"/"+e.Name())
		}
	}
	return names, nil
}

// ClearUnfinished removes what an interrupted Make left behind. The caller holds the store
// lock, so that no Make is in progress.
func ClearUnfinished(root writer.FS) error {
	names, err := Unfinished(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("clear unfinished session: %w", err)
		}
	}
	// The counters and the hint to the latest session are replaced under the same lock.
	err = writer.RemoveTemps(root, ".", func(of string) bool { return of == folder.IDsFile })
	return errors.Join(err, writer.RemoveTemps(root, folder.Sessions, nil))
}

func (c *Committer) build(first First) (err error) {
	root, final := c.opts.Place.Root(), folder.Path(c.id)
	defer func() {
		if err != nil && c.path != "" { // else nothing was made
			_ = root.RemoveAll(c.path)
		}
	}()
	if err = c.begin(root, folder.Sessions+"/"+newPrefix+c.id.String()); err != nil {
		return err
	}
	if err = c.fill(first); err != nil {
		return err
	}
	if err = c.publish(); err != nil {
		return err
	}
	if err = root.Rename(c.path, final); err != nil {
		return writer.NewError("create session", filepath.Join(root.Name(), final), writer.NotCommitted, err)
	}
	c.path = final
	if err = root.SyncDir(folder.Sessions); err != nil {
		return writer.NewError("create session", filepath.Join(root.Name(), final), writer.NotDurable, err)
	}
	return nil
}

// Stage makes a session in another folder below .lopen, where nobody sees it. Nothing of it is
// durable, and it has no readable files, before Close has returned nil; then the caller may put
// the folder in its place. The caller has reserved the ID.
func Stage(first First, in string, opts Options) (*Committer, error) {
	c := &Committer{opts: opts, id: first.State.ID(), mark: &atomic.Pointer[Durable]{}}
	err := c.begin(opts.Place.Root(), in+"/"+first.State.ID().String())
	if err == nil {
		c.staged = &unsynced{FS: c.dir}
		c.dir = c.staged
		err = c.fill(first)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// begin makes the folder of a session under a path that is not its own yet, and takes its lease.
func (c *Committer) begin(root writer.FS, path string) error {
	if err := root.Mkdir(path, 0o700); err != nil {
		return writer.NewError("make folder", filepath.Join(root.Name(), path), writer.NotCommitted, err)
	}
	c.path = path
	dir, err := writer.OpenDir(root, path)
	if err != nil {
		return err
	}
	c.dir = named{dir, filepath.Join(root.Name(), folder.Path(c.id))}
	c.lock, err = writer.TryLock(c.dir, folder.LeaseFile, c.opts.Owner)
	return err
}

// fill writes the files of a new folder, but for the readable ones.
func (c *Committer) fill(first First) (err error) {
	if c.journal, err = journal.Create(c.dir, c.id.String()); err != nil {
		return err
	}
	c.journal.Compression = c.opts.Compression
	c.event, c.pub = first.Event, publisher{copies: [2]copied{{known: true}, {known: true}}}
	if first.Share != nil {
		if c.at, err = first.Share(c.path); err != nil {
			return err
		}
	}
	if _, err = c.append(actors.Batch{State: first.State}); err != nil {
		return err
	}
	c.at.Iterations = c.at.Seq // so that metrics.json is written even without iterations
	if first.Others == nil {
		return nil
	}
	return first.Others(c.dir)
}

// named is a folder whose Name is the one that it will have after the rename.
type named struct {
	writer.FS
	name string
}

func (n named) Name() string { return n.name }

// Open resumes a session; its next record has the event. Open quarantines a readable file
// that differs from what a publication wrote, and writes it again. The Committer owns held from
// then on. After an error held is closed.
func Open(held *Held, event record.Event, opts Options) (*Committer, error) {
	return open(held, event, opts, &atomic.Pointer[Durable]{})
}

func open(held *Held, event record.Event, opts Options, mark *atomic.Pointer[Durable]) (*Committer, error) {
	ld := held.Contents
	id := ld.State.ID()
	c := &Committer{opts: opts, id: id, path: folder.Path(id), dir: held.Dir, lock: held.Lease, mark: mark, event: event}
	for _, x := range ld.Stale {
		if err := c.quarantine(x.Name, x.Err); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	// The last holder may have died between a rename and the sync of the folder. Open of the
	// journal syncs the folder, so what was read is durable afterwards.
	var err error
	if c.journal, err = journal.Open(c.dir, id.String(), ld.Log); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.journal.Compression = opts.Compression
	c.base, c.at = cmp.Or(ld.Unedited, ld.State), ld.At
	c.whole = ld.Broken()
	c.pub.state = shown{seq: ld.Named[0].Seq, named: ld.Named[0]}
	c.pub.metrics = shown{seq: ld.Named[1].Seq, named: ld.Named[1]}
	c.pub.looked(c.dir)
	c.opts.Reserve.Keep()
	if len(ld.Stale) > 0 {
		_ = c.publish() // after an error the next publication tries again
	}
	c.acknowledge(c.at, c.base)
	return c, nil
}
