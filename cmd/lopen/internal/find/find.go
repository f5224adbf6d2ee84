package find

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A Query is what is looked for. What is zero does not matter.
type Query struct {
	Text    string // see [search.Parse]
	Module  string
	Role    string
	Tool    string
	File    string // a path, or the end of one
	Since   time.Time
	Limit   int  // hits; 0 is 20
	NoIndex bool // read everything
}

// DefaultLimit is how many hits a page has when nothing else is asked.
const DefaultLimit = 20

// A Hit is one place that has what was looked for.
type Hit struct {
	Session string         `json:"session,omitempty"`
	Module  string         `json:"module,omitempty"`
	Origin  session.Origin `json:"origin,omitempty"`
	Agent   string         `json:"agent,omitempty"` // whose own history it is
	Cwd     string         `json:"cwd,omitempty"`   // the folder that the agent worked in
	Path    string         `json:"path,omitempty"`  // of a document, or of the agent's file
	Seq     uint64         `json:"seq,omitempty"`   // of the session's log
	Line    uint64         `json:"line,omitempty"`  // of a document
	Time    time.Time      `json:"time,omitzero"`
	Kind    string         `json:"kind"` // message, attempt, files, plan, research, specification
	Role    string         `json:"role,omitempty"`
	Tool    string         `json:"tool,omitempty"`
	Files   []string       `json:"files,omitempty"`
	Snippet search.Snippet `json:"snippet"`
	Score   float64        `json:"score"`
	Open    string         `json:"open,omitempty"` // the command that shows it
}

// A Page is the best hits.
type Page struct {
	Hits  []Hit
	Found int      // places that have it, of which Hits are the best
	More  bool     // there are more than Found, which are older
	Notes []string // what the reader has to know: what was not searched, or slowly
}

// A File is a document of a module that is searched beside the sessions.
type File struct {
	Kind   string // plan, research or specification
	Module string
	In     fs.FS // the folder that Path is below
	Path   string
}

// A Finder searches one project.
type Finder struct {
	Store *lifecycle.Store
	Files []File   // the documents
	Cache string   // the folder in which the index is kept; "" for none
	Lopen []string // the command that opens a hit, without its arguments; nil for lopen
	// Shown is the path of a document where the person is; nil for File.Path.
	Shown func(f *File) string
}

// wait is how long a search waits for another process that writes the index.
const wait = 3 * time.Second

// Find searches. The error wraps [search.ErrQuery] when the query is wrong.
func (f *Finder) Find(ctx context.Context, q Query) (*Page, error) {
	c := &corpus{store: f.Store, of: map[string]Hit{}, shown: map[string]string{}, lopen: f.Lopen}
	if err := c.sessions(); err != nil {
		return nil, err
	}
	for _, file := range f.Files {
		c.file(file, f.Shown)
	}
	return c.find(ctx, f.Cache, q)
}

// A corpus is all that is searched.
type corpus struct {
	store   *lifecycle.Store
	sources []search.Source
	of      map[string]Hit    // what all hits of a source have
	shown   map[string]string // the path of a document where the person is, by its source
	lopen   []string
	open    func(source string, h *Hit)
	notes   []string
}

// roles are those of messages, and what followed attempts.
var roles = []string{
	session.RoleUser, session.RoleAssistant, session.RoleTool, session.RoleSystem,
	record.Done, record.Failed, record.Waits, record.Needed, record.Uncounted, record.Interrupted, record.Killed,
}

// find searches a corpus with the index below a folder, or without one.
func (c *corpus) find(ctx context.Context, dir string, q Query) (*Page, error) {
	query, err := search.Parse(q.Text)
	if err != nil {
		return nil, err
	}
	if q.Role != "" && !slices.Contains(roles, strings.ToLower(q.Role)) {
		return nil, fmt.Errorf("%w for the role %s: give one of %s", search.ErrQuery, q.Role, strings.Join(roles, ", "))
	}
	query.Role, query.Tool, query.Since = q.Role, q.Tool, q.Since
	if q.File != "" {
		query.File = search.Path(q.File)
	}
	if query.Empty() {
		return nil, fmt.Errorf("%w: give a word that must occur, or --file", search.ErrQuery)
	}
	if q.Module != "" {
		if !slices.ContainsFunc(c.sources, func(s search.Source) bool { return c.of[s.Key].Module == q.Module }) {
			return nil, fmt.Errorf("there is nothing of module %s here: %w", q.Module, lifecycle.ErrNotFound)
		}
		query.Sources = func(s *search.Source) bool { return c.of[s.Key].Module == q.Module }
	}
	r, err := c.look(ctx, dir, query, cmp.Or(q.Limit, DefaultLimit), q.NoIndex)
	if err != nil {
		return nil, err
	}
	p := &Page{Hits: make([]Hit, len(r.Hits)), Found: r.Found, More: r.More}
	if r.Note != "" {
		c.notes = append(c.notes, r.Note+"; everything was read instead")
	}
	for i, h := range r.Hits {
		p.Hits[i] = c.hit(&h)
	}
	p.Notes = c.notes
	return p, nil
}

func (c *corpus) look(ctx context.Context, dir string, query *search.Query, limit int, scan bool) (*search.Result, error) {
	failed := map[string]bool{}
	fail := func(s *search.Source, err error) {
		if !failed[s.Key] {
			failed[s.Key] = true
			c.notes = append(c.notes, fmt.Sprintf("not all of %s could be read: %v", cmp.Or(c.of[s.Key].Session, c.of[s.Key].Path), err))
		}
	}
	if scan || dir == "" {
		return search.Scan(ctx, c.sources, query, limit, fail)
	}
	ix, err := search.Open(dir, wait)
	if err != nil {
		c.notes = append(c.notes, fmt.Sprintf("the index cannot be used: %v; everything was read instead", err))
		return search.Scan(ctx, c.sources, query, limit, fail)
	}
	defer func() { _ = ix.Close() }() // it has nothing that is not derived
	return ix.Search(ctx, c.sources, query, limit, fail)
}

// inherited is added to the number of a message that a fork has of another session's log.
const inherited = 1 << 62

func (c *corpus) hit(h *search.Hit) Hit {
	out := c.of[h.Source]
	out.Time, out.Role, out.Tool, out.Files = h.Time, h.Role, h.Tool, h.Files
	out.Kind, out.Snippet, out.Score = h.Kind, h.Snippet, h.Score
	switch {
	case c.open != nil:
		c.open(h.Source, &out)
	case out.Session == "":
		out.Line = h.Number + uint64(h.Lines)
		out.Open = plain.Quote("sed", "-n", fmt.Sprintf("%d,%dp", out.Line, out.Line+20), c.shown[h.Source])
	case h.Number >= inherited:
		out.Open = c.command("session", "show", out.Session, "--messages", "--full")
	default:
		out.Seq = h.Number
		out.Open = c.command("session", "log", out.Session, "--seq", strconv.FormatUint(h.Number, 10))
	}
	return out
}

func (c *corpus) command(args ...string) string {
	lopen := c.lopen
	if len(lopen) == 0 {
		lopen = []string{"lopen"}
	}
	return plain.Quote(slices.Concat(lopen, args)...)
}

// sessions adds those of the store.
func (c *corpus) sessions() error {
	all, err := c.store.List()
	if err != nil {
		return err
	}
	here := make(map[session.ID]bool, len(all))
	for i := range all {
		here[all[i].ID] = all[i].Err == nil
	}
	unread := 0
	for i := range all {
		info := &all[i]
		if info.Err != nil {
			unread++
			continue
		}
		// A fork has the messages before it; they are found in the session that they are from.
		alone := info.Lineage != nil && !here[info.Lineage.From]
		key := "session " + info.ID.String()
		l := &logReader{store: c.store, id: info.ID, inherits: alone}
		c.sources = append(c.sources, search.Source{
			Key: key, Version: fmt.Sprintf("%d %s %t", textVersion, info.Incarnation, alone), Mark: info.Seq, Sign: fmt.Sprint(info.Shown.UnixNano()),
			Grows: info.Status == session.StatusActive || info.Holder != nil, Order: info.CreatedAt, Read: l.read,
		})
		c.of[key] = Hit{Session: info.ID.String(), Module: info.Module, Origin: info.Origin}
	}
	if unread > 0 {
		c.notes = append(c.notes, sessions(unread)+" that cannot be read: not searched; see lopen session verify")
	}
	lost, err := c.store.Quarantined()
	if n := len(lost); n > 0 {
		c.notes = append(c.notes, sessions(n)+" in .lopen/corrupted: not searched; see lopen session verify")
	}
	return err
}

func sessions(n int) string {
	if n == 1 {
		return "1 session"
	}
	return fmt.Sprintf("%d sessions", n)
}

// Modules are the documents of modules: the plans, which are in the folder of the store, and in that of
// the documents the specifications with the research beside them. modules are those that have a folder in the store;
// others have one of their name in the folder requirements. The error says what could not be listed.
func Modules(home, docs fs.FS, modules []string, requirements string, spec func(module string) string) (all []File, err error) {
	entries, err := fs.ReadDir(docs, path.Clean(requirements))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	modules = slices.Clone(modules)
	for _, e := range entries {
		if session.ValidateModule(e.Name()) == nil && !e.Type().IsRegular() && !slices.Contains(modules, e.Name()) {
			modules = append(modules, e.Name())
		}
	}
	for _, m := range modules {
		at := spec(m)
		all = append(all, File{"plan", m, home, lifecycle.PlanPath(m)}, File{"specification", m, docs, at})
		entries, _ := fs.ReadDir(docs, path.Dir(at)) // there need not be one
		for _, e := range entries {
			if name := e.Name(); strings.HasPrefix(name, "RESEARCH") && strings.HasSuffix(name, ".md") {
				all = append(all, File{"research", m, docs, path.Join(path.Dir(at), name)})
			}
		}
	}
	return all, err
}
