package carry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A Sink takes what is exported, in order.
type Sink interface {
	// Add takes a file. content has exactly size bytes and is read before Add returns.
	Add(name string, size int64, content io.Reader) error
	// Object takes an object. It calls open only if it does not have the object.
	Object(h blob.Hash, size int64, open func() (io.ReadCloser, error)) error
	// Close ends what is exported. Without it nothing counts.
	Close() error
}

// A Store is the store that is exported from.
type Store struct {
	Project writer.FS // the project's folder
	Root    writer.FS // .lopen
	// Busy reports whether a process holds a session.
	Busy func(session.ID) bool
	// Memory has the hashes of the tracker's snapshots, see [files.Recall].
	Memory files.Memory
	// Outside returns the ignore files from outside of the project, see [files.Options].
	Outside func(ctx context.Context) []files.IgnoreFile
}

// ExportOptions say what is exported.
type ExportOptions struct {
	Sessions []session.ID
	// All exports what can be read: a session that cannot is skipped, one that was edited
	// outside is exported as its log has it, and every checkpoint is included, whosever it is.
	All bool
	// Backup exports what only a backup has: the project's config.json, since whoever gets a
	// bundle has settings of their own, all plans, the folders in Kept, and damaged sessions.
	Backup bool
	// Kept are paths below .lopen of session folders that are exported as they lie there, each
	// with its note: those in the trash and in corrupted/.
	Kept []string
	// Aside returns the path and the note that a damaged session has in a backup.
	Aside func(s Skipped) (to string, note []byte)
	// NoMessages leaves out what messages and events say, the output and the readable copies.
	NoMessages bool
	// Redact hides credentials once more, in all texts. Checkpoints are left out then, since
	// a content cannot be changed under its hash. nil exports everything as it is.
	Redact *redact.Redactor
	// Scratch is a folder for sessions that have to be written anew, with NoMessages or Redact.
	// It has to be private. The caller removes what is in it.
	Scratch writer.FS
	// Specification returns the path of a module's specification in the project; nil means
	// that it is not known.
	Specification func(module string) string
	Lopen         string // version of lopen
	Git           checkpoint.Git
	Now           time.Time
}

// Exported is what was exported.
type Exported struct {
	Header      bundle.Header
	Checkpoints int
	Objects     int
	Files       int   // entries other than objects
	Bytes       int64 // of all entries
	InProject   int   // paths of project.jsonl
	Skipped     []Skipped
	// Incomplete says that something is damaged, and left out or exported as it is: what was
	// exported before may have it whole.
	Incomplete bool
	// Warnings are texts about what was left out or is not as it should be.
	Warnings []string
}

// A Skipped is a session that could not be exported. As an error it is why.
type Skipped struct {
	ID  session.ID
	Err error
}

func (s *Skipped) Error() string { return s.Err.Error() }

func (s *Skipped) Unwrap() error { return s.Err }

// Export exports sessions with all that they need to the sink that open returns, and closes it.
// It takes no lock of a session: those that are held go on. What is exported of a session is
// what its log had at one moment, and can be resumed from there. Sweeps wait for the end.
//
// A content of a checkpoint that turns out to be damaged costs the checkpoints that need it:
// Export calls open again and begins anew without them, and so it does without a session that was
// deleted meanwhile. open may refuse that with an error.
func Export(ctx context.Context, from Store, o ExportOptions, open func(bundle.Header) (Sink, error)) (*Exported, error) {
	x := &exporter{Store: from, o: o, ctx: ctx, bad: map[blob.Hash]error{}}
	defer x.close()
	if err := x.prepare(); err != nil {
		return nil, err
	}
	var cause error
	for {
		if err := x.find(); err != nil {
			return nil, err
		}
		sink, err := open(x.out.Header)
		if err != nil {
			return nil, errors.Join(cause, err)
		}
		bad := len(x.bad)
		if cause = x.push(sink); cause == nil {
			return x.out, nil
		}
		gone, err := x.dropGone()
		if err != nil {
			return nil, err
		}
		if len(x.bad) == bad && !gone {
			return x.out, cause
		}
	}
}

// An exporter is one Export.
type exporter struct {
	Store
	o   ExportOptions
	ctx context.Context //nolint:containedctx // it is that of the one call that the exporter is for
	out *Exported

	parts     []*part
	kept      []*part // folders that are exported as they lie there
	open      int     // files of sessions that are open
	documents []document
	project   *files.Snapshot
	warnings  []string
	damaged   bool // one of the warnings is about damage
	skipped   []Skipped

	blobs    *blob.Store // nil if there are no checkpoints to export
	hold     *blob.Hold  // nil if the store may only be read
	contents contents
	dirs     []writer.FS
	chains   []chain
	objects  []object
	size     int64               // of the chains and the objects, in bytes
	bad      map[blob.Hash]error // objects that are damaged or missing
}

func (x *exporter) close() {
	for _, p := range slices.Concat(x.parts, x.kept) {
		_ = p.close() // nothing was written to it
	}
	if x.hold != nil {
		_ = x.hold.Release()
	}
	for _, d := range x.dirs {
		_ = d.Close()
	}
}

func (x *exporter) warn(format string, args ...any) {
	x.warnings = append(x.warnings, fmt.Sprintf(format, args...))
}

// prepare finds out what there is to export.
func (x *exporter) prepare() error {
	for _, id := range x.o.Sessions {
		if err := x.ctx.Err(); err != nil {
			return fmt.Errorf("export: %w", context.Cause(x.ctx))
		}
		if err := x.add(id); err != nil {
			return err
		}
	}
	for _, path := range x.o.Kept {
		if err := x.keep(path, path, nil); err != nil {
			return err
		}
	}
	if err := x.gatherDocuments(); err != nil {
		return err
	}
	if err := x.look(); err != nil {
		return err
	}
	if x.o.Redact == nil {
		return x.openCheckpoints()
	}
	if slices.ContainsFunc(x.parts, func(p *part) bool { return p.checkpoint != "" }) {
		x.warn("the checkpoints are left out: a file's content cannot be changed under its hash")
	}
	return nil
}

// add adds a session to the parts, or leaves it out.
func (x *exporter) add(id session.ID) error {
	p, err := x.part(id)
	if err != nil && x.gone(id) {
		return x.leaveOut(id)
	}
	if skipped, ok := errors.AsType[*Skipped](err); ok && x.o.All {
		return x.setAside(*skipped)
	}
	if err == nil {
		x.parts = append(x.parts, p)
	}
	return err
}

// find finds what the checkpoints need, and makes the header.
func (x *exporter) find() error {
	x.out = &Exported{Skipped: x.skipped, Warnings: slices.Clone(x.warnings), Incomplete: x.damaged || len(x.skipped) > 0, InProject: len(x.project.Files)}
	if err := x.findCheckpoints(); err != nil {
		return err
	}
	x.out.Header = x.header()
	return nil
}

// push exports everything to a sink. What of the objects turns out to be damaged is added to
// x.bad.
func (x *exporter) push(sink Sink) error {
	out := &counted{Sink: sink, ctx: x.ctx, out: x.out}
	for _, p := range slices.Concat(x.parts, x.kept) {
		if err := p.push(out); err != nil {
			return fmt.Errorf("export %s: %w", p.at, err)
		}
	}
	if err := x.pushCheckpoints(out); err != nil {
		return err
	}
	for i, d := range x.documents {
		if d.first(x.documents[:i]) {
			if err := out.Add(documentEntry(d.SHA256), d.Size, bytes.NewReader(d.content)); err != nil {
				return err
			}
		}
	}
	lines := newProjectLines(x.project)
	if err := out.Add(projectFile, lines.size(), lines); err != nil {
		return err
	}
	return out.Close()
}

// header returns the header. Bytes is the sum of the sizes of what push exports, at most.
func (x *exporter) header() bundle.Header {
	h := bundle.Header{
		Lopen: x.o.Lopen, At: x.o.Now.UTC(), NoMessages: x.o.NoMessages, Redacted: x.o.Redact != nil,
		Project: bundle.Project{Path: x.Project.Name(), Head: x.o.Git.Head},
		Bytes:   newProjectLines(x.project).size() + x.size,
	}
	h.Project.Branch, _ = x.o.Redact.String(x.o.Git.Branch)
	for _, p := range x.parts {
		h.Sessions = append(h.Sessions, p.info)
		h.Bytes += p.bytes()
	}
	for _, p := range x.kept {
		h.Bytes += p.bytes()
	}
	for i, d := range x.documents {
		h.Documents = append(h.Documents, d.Document)
		if d.first(x.documents[:i]) {
			h.Bytes += d.Size
		}
	}
	return h
}

// A counted sink counts what goes into it, and ends with the context.
type counted struct {
	Sink
	ctx context.Context //nolint:containedctx // see exporter
	out *Exported
}

func (c *counted) Add(name string, size int64, content io.Reader) error {
	c.out.Files++
	c.out.Bytes += size
	return c.Sink.Add(name, size, inContext{c.ctx, content})
}

func (c *counted) Object(h blob.Hash, size int64, open func() (io.ReadCloser, error)) error {
	if err := c.ctx.Err(); err != nil {
		return fmt.Errorf("export: %w", context.Cause(c.ctx))
	}
	c.out.Objects++
	c.out.Bytes += size
	return c.Sink.Object(h, size, open)
}

// inContext reads until a context ends.
type inContext struct {
	ctx context.Context //nolint:containedctx // see exporter
	r   io.Reader
}

func (r inContext) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, fmt.Errorf("export: %w", context.Cause(r.ctx))
	}
	return r.r.Read(p)
}
