package histories

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// part is how much is appended before the position is noted, in bytes. It is below the backlog of
// a session.
const part = 8 << 20

// A Result says what became of one history.
type Result struct {
	Session  string         `json:"session,omitempty"` // "" if there is nothing to take
	Agent    string         `json:"agent"`
	ID       string         `json:"agentSession"`
	Path     string         `json:"path"`
	Made     bool           `json:"made"`     // the session is new
	Messages int            `json:"messages"` // that are new
	Events   int            `json:"events"`   // that are new
	TooLarge int            `json:"tooLarge,omitempty"`
	Report   *agents.Report `json:"report"`
}

// An Index has the sessions of a store by module, for an import of many histories: to list the
// sessions for each of them would take time that grows with the square of their number.
type Index map[string][]session.ID

// NewIndex lists the sessions of a store.
func NewIndex(store *lifecycle.Store) (Index, error) {
	all, err := store.List()
	if err != nil {
		return nil, err
	}
	x := Index{}
	for _, info := range all {
		x[info.ID.Module] = append(x[info.ID.Module], info.ID)
	}
	return x, nil
}

// Find returns the State of the session that stands for one of an agent, or nil if the index knows
// none.
func (x Index) Find(store *lifecycle.Store, agent, agentSession string) *session.State {
	for _, id := range x[agents.Module(agent, agentSession)] {
		st, _, _ := store.Read(id) // what is wrong with it is said when it is opened
		if st == nil {
			continue
		}
		if h := st.Header(); h.StandsFor(agentSession) {
			return st
		}
	}
	return nil
}

// Import takes what is new of a history into its session, and makes the session first if there is
// none. A session that is made is complete, and its origin is [session.OriginImport]. The error
// wraps [lifecycle.ErrBusy] if another process has the session. A session that the index does not
// know yet is found all the same.
func Import(ctx context.Context, store *lifecycle.Store, x Index, h *agents.History) (*Result, error) {
	res := begun(h)
	module := agents.Module(h.Agent, h.ID)
	var at agents.Position
	if st := x.Find(store, h.Agent, h.ID); st != nil {
		res.Session, at = st.ID().String(), read(st).Position
	}
	if news, err := res.look(ctx, h, at); err != nil || !news {
		return res, err
	}
	head, err := h.Head()
	if err != nil {
		return res, fmt.Errorf("import history %s: %w", h.ID, err)
	}
	sess, made, err := store.OpenOfAgent(ctx, module, h.ID, Name(head.Title), origin(h))
	if err != nil {
		return res, fmt.Errorf("import history %s: %w", h.ID, err)
	}
	res.Session, res.Made = sess.ID().String(), made
	err = Continue(ctx, store, sess, h, res)
	return res, errors.Join(err, sess.Close(context.WithoutCancel(ctx)))
}

// look reports whether a history has anything behind a position. It sets the report if not.
func (res *Result) look(ctx context.Context, h *agents.History, at agents.Position) (bool, error) {
	r, err := h.Open(at)
	if err != nil {
		return false, err
	}
	defer r.Close()
	res.Report = r.Report()
	if at.Begun {
		return true, nil
	}
	_, err = r.Next(ctx)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// maxName bounds the name of a session, in bytes.
const maxName = 120

// Name makes the display name of a session of what was said first in it.
func Name(title string) string {
	title = strings.Map(func(r rune) rune {
		if plain.Printable(r) {
			return r
		}
		return -1
	}, title)
	return plain.Clip(title, maxName)
}

// Continue takes what is new of a history into its session, which the caller holds. What it took
// is durable when it returns nil.
func Continue(ctx context.Context, store *lifecycle.Store, sess *lifecycle.Session, h *agents.History, res *Result) error {
	_, err := (&importer{sess: sess, res: res, note: read(sess.State())}).run(ctx, store, h)
	return err
}

// ContinueSome is Continue up to some 8 MiB, unless a file of the history was rewritten. It reports whether there
// is more.
func ContinueSome(ctx context.Context, store *lifecycle.Store, sess *lifecycle.Session, h *agents.History, res *Result) (more bool, err error) {
	return (&importer{sess: sess, res: res, note: read(sess.State()), once: true}).run(ctx, store, h)
}

// importer appends the items of one history to its session.
type importer struct {
	sess *lifecycle.Session
	res  *Result
	note note

	once bool // stop when the position is noted

	reader *agents.Reader
	known  *known // what may be there already; nil if nothing may
	again  bool   // a file was rewritten once: all is read again, and only the end of the pass is noted
	held   int    // bytes since the last note
	spent  session.Usage
	last   agents.Report // at the last note
}

func (im *importer) run(ctx context.Context, store *lifecycle.Store, h *agents.History) (more bool, err error) {
	if err := im.take(ctx, store, h); err != nil {
		return false, fmt.Errorf("import history %s: %w", h.ID, err)
	}
	return im.note.Position.Begun, nil
}

func (im *importer) take(ctx context.Context, store *lifecycle.Store, h *agents.History) (err error) {
	if im.note.Cwd == "" {
		if head, err := h.Head(); err == nil {
			im.note.Cwd = im.sess.Redact(plain.Clip(head.Cwd, maxCwd))
		}
	}
	if im.reader, err = h.Open(im.note.Position); err != nil {
		return err
	}
	defer im.reader.Close()
	im.res.Report = im.reader.Report()
	if im.known, err = im.there(store); err != nil {
		return err
	}
	if err := im.remember(); err != nil { // the ends of the pass, in front of its first message
		return err
	}
	if err := im.all(ctx); err != nil {
		return err
	}
	// What others appended to the session meanwhile is none of the history, and looked at once.
	if err := im.sess.Sync(ctx); err != nil {
		return err
	}
	im.note.Messages, im.note.Events = im.sess.Appended()
	if err := im.remember(); err != nil {
		return err
	}
	return im.sess.Sync(ctx)
}

// all takes the items up to the end of the pass.
func (im *importer) all(ctx context.Context) error {
	for {
		items, err := im.reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range items {
			if err := im.item(ctx, &items[i]); err != nil {
				return err
			}
		}
		if im.held >= part && !im.again {
			if im.once {
				return nil
			}
			if err := im.remember(); err != nil {
				return err
			}
		}
	}
}

// maxCwd bounds the folder of a note, in bytes.
const maxCwd = 4 << 10

// there returns what the session has of the items that are read next: what an import that did not
// end has appended, or what stands in a file that was rewritten. Nil means nothing.
func (im *importer) there(store *lifecycle.Store) (*known, error) {
	messages, events := im.sess.Appended()
	im.again = slices.ContainsFunc(im.reader.Position().Files, func(f agents.FilePosition) bool { return f.Again })
	if im.again {
		im.note.Messages, im.note.Events = 0, 0
		im.note.Unknown, im.note.Bad = nil, 0 // all is read again
	}
	if messages <= im.note.Messages && events <= im.note.Events {
		return nil, nil
	}
	return load(im.sess, store, im.note.Messages, im.note.Events)
}

// item appends an item unless the session has it.
func (im *importer) item(ctx context.Context, it *agents.Item) (err error) {
	has, err := im.known.take(im.sess, it)
	if err != nil {
		return err
	}
	if u := it.Usage; u != nil && !(has && it.Again) { // else it counted before the file was rewritten
		im.spent.InputTokens += u.InputTokens
		im.spent.OutputTokens += u.OutputTokens
		im.spent.CachedTokens += u.CachedTokens
	}
	message := it.Message != nil
	if !has {
		if message, err = im.store(ctx, it); err != nil {
			return err
		}
	}
	if message {
		im.note.Messages++
	} else {
		im.note.Events++
	}
	return nil
}

// store appends an item, or what stands for one that is too large. It reports whether that is a
// message.
func (im *importer) store(ctx context.Context, it *agents.Item) (message bool, err error) {
	if err = im.append(ctx, it); errors.Is(err, lifecycle.ErrInvalid) { // after the redaction it is too large for a record
		im.res.TooLarge++
		it = tooLarge(it, err)
		if has, kerr := im.known.take(im.sess, it); has || kerr != nil {
			return false, kerr
		}
		err = im.append(ctx, it)
	}
	if err != nil {
		return false, err
	}
	im.held += size(it)
	if it.Message != nil {
		im.res.Messages++
		return true, nil
	}
	im.res.Events++
	return false, nil
}

func (im *importer) append(ctx context.Context, it *agents.Item) error {
	for {
		var err error
		if it.Message != nil {
			err = im.sess.Append(it.Message)
		} else {
			err = im.sess.AppendEvent(it.Event)
		}
		if !errors.Is(err, lifecycle.ErrBacklogFull) {
			return err
		}
		if err := im.sess.Sync(ctx); err != nil {
			return err
		}
	}
}

// tooLarge returns the event that stands for an item that cannot be stored.
func tooLarge(it *agents.Item, why error) *agents.Item {
	of := struct {
		Type  string `json:"type"`
		Bytes int    `json:"bytes"`
		UUID  string `json:"uuid,omitempty"`
		Why   string `json:"why"`
	}{Type: agents.BadLine, Bytes: size(it), Why: plain.Clip(why.Error(), maxName)}
	if it.Message != nil {
		of.UUID = it.Message.ID
	}
	event, err := strictjson.Marshal(of)
	if err != nil { // does not happen for texts
		event = strictjson.Value(`{}`)
	}
	return &agents.Item{Event: event}
}

// remember notes how far the history was taken, and what it cost since the last note. The next
// commit has the note with all that was appended before.
func (im *importer) remember() error {
	im.note.Position = im.reader.Position()
	im.note.Position.Redact(im.sess.Redact)
	now := *im.reader.Report()
	if im.note.Unknown == nil && len(now.Unknown) > 0 {
		im.note.Unknown = map[string]int{}
	}
	for name, n := range now.Unknown {
		im.note.Unknown[name] += n - im.last.Unknown[name]
	}
	im.note.Bad += now.Bad - im.last.Bad
	if !now.First.IsZero() && (im.note.First.IsZero() || now.First.Before(im.note.First)) {
		im.note.First = now.First
	}
	if now.Last.After(im.note.Last) {
		im.note.Last = now.Last
	}
	spent := session.Iteration{
		StartedAt: now.First, Model: im.sess.Redact(plain.Clip(now.Model, maxName)),
		InputTokens: im.spent.InputTokens, OutputTokens: im.spent.OutputTokens, CachedTokens: im.spent.CachedTokens,
	}
	err := im.sess.Update(func(st *session.State) (*session.State, error) {
		e := st.Edit()
		hd := e.Header()
		if err := im.note.write(hd); err != nil {
			return nil, err
		}
		if spent.InputTokens+spent.OutputTokens+spent.CachedTokens > 0 {
			e.AppendIteration(spent)
		}
		if spent.Model != "" && !slices.Contains(hd.Models, spent.Model) {
			hd.Models = append(hd.Models, spent.Model)
		}
		if hd.Origin == session.OriginImport && !im.note.First.IsZero() {
			hd.CreatedAt, hd.UpdatedAt, hd.CompletedAt = im.note.First, im.note.Last, im.note.Last
		}
		return e.State()
	})
	now.Unknown = maps.Clone(now.Unknown)
	im.last, im.held, im.spent = now, 0, session.Usage{}
	return err
}
