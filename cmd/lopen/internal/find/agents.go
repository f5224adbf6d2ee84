package find

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// maxHistories bounds what of the agents' own histories is searched, in bytes of their files. The
// newest are.
const maxHistories = 8 << 30

// Agents searches the agents' own histories of all projects, where they lie.
type Agents struct {
	Home   string // the user's folder
	Getenv func(string) string
	Temp   string // where databases are copied to
	Cache  string // the folder in which the index is kept, which is made; "" for none
	Hide   *redact.Redactor
	Open   func(agent, session string) []string // the command that opens a session of an agent; nil for none
}

// Find searches. What is found has its credentials hidden, and so has the index.
func (a *Agents) Find(ctx context.Context, q Query) (page *Page, err error) {
	c := &corpus{of: map[string]Hit{}}
	var all []agents.History
	for _, agent := range [...]string{agents.Claude, agents.Codex, agents.OpenCode} {
		paths, err := agents.Folders(agent, a.Home, a.Getenv)
		if err != nil {
			return nil, err
		}
		if !filepath.IsAbs(a.Home) && slices.ContainsFunc(paths, func(path string) bool { return !filepath.IsAbs(path) }) {
			c.notes = append(c.notes, fmt.Sprintf("the histories of %s were not searched: HOME is %q, which is no absolute path", agent, a.Home))
			continue
		}
		library, err := agents.Open(ctx, agent, a.Temp, paths...)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			c.notes = append(c.notes, fmt.Sprintf("the histories of %s were not searched: %v", agent, err))
			continue
		}
		defer library.Close()
		for _, err := range library.Left {
			c.notes = append(c.notes, fmt.Sprintf("not searched: %v", err))
		}
		all = append(all, library.Histories...)
	}
	c.histories(a.Hide, all)
	c.open = a.opener(all)
	dir := a.Cache
	switch {
	case q.NoIndex:
	case dir == "":
		c.notes = append(c.notes, "there is no index: the environment names no folder for the user's cache; everything was read instead")
	default:
		if err := os.MkdirAll(dir, 0o700); err != nil {
			c.notes = append(c.notes, fmt.Sprintf("there is no index: %v", err))
			dir = ""
		}
	}
	return c.find(ctx, dir, q)
}

// histories adds those of agents.
func (c *corpus) histories(hide *redact.Redactor, all []agents.History) {
	slices.SortFunc(all, func(a, b agents.History) int { return b.Modified.Compare(a.Modified) })
	var bytes int64
	version := fmt.Sprint(textVersion, " ", hide.Fingerprint()) // what another rule hides is to be in no index
	for i := range all {
		h := &all[i]
		if bytes += h.Bytes; bytes > maxHistories {
			c.notes = append(c.notes, fmt.Sprintf("%d histories were not searched: those before %s", len(all)-i, h.Modified.Format("2006-01-02")))
			return
		}
		key := keyOf(h)
		r := &historyReader{h: h, hide: hide}
		// A file that grew has another time: it is read on, or from its beginning if it was rewritten.
		s := search.Source{Key: key, Version: version, Mark: uint64(max(h.Modified.UnixMicro(), 1)), Order: h.Modified, Read: r.read}
		if h.Agent == agents.OpenCode {
			if s.Grows = time.Since(h.Modified) < unsettled; !s.Grows {
				s.Mark++ // its last messages are complete now, or count as that
			}
			s.Read = r.reread
		}
		c.sources = append(c.sources, s)
		c.of[key] = Hit{Agent: h.Agent, Session: h.ID, Path: h.Path}
	}
}

// unsettled is how long a session of opencode is read by each search after the last change that it notes. It notes
// neither each part of an answer, nor that an answer counts as complete an hour after its last part.
const unsettled = 24 * time.Hour

// opener returns what says where the agent of a hit worked and how it is opened: by the agent, in its folder, or
// where that is gone by lopen, which shows what it has taken in.
func (a *Agents) opener(all []agents.History) func(source string, h *Hit) {
	of := make(map[string]*agents.History, len(all))
	for i := range all {
		of[keyOf(&all[i])] = &all[i]
	}
	return func(source string, h *Hit) {
		head, _ := of[source].Head() // one that cannot be read says nothing
		cwd, hidden := a.Hide.String(head.Cwd)
		h.Cwd = cwd
		h.Open = trust.Quote([]string{"lopen", "session", "import", "--from", h.Agent, h.Path})
		info, err := os.Stat(head.Cwd)
		if a.Open == nil || err != nil || !info.IsDir() || hidden > 0 {
			return
		}
		if argv := a.Open(h.Agent, h.Session); len(argv) > 0 {
			h.Open = trust.Quote([]string{"cd", head.Cwd}) + " && " + trust.Quote(argv)
		}
	}
}

func keyOf(h *agents.History) string { return h.Agent + " " + h.Path + " " + h.ID }

// A historyReader reads the documents of an agent's session.
type historyReader struct {
	h    *agents.History
	hide *redact.Redactor
}

// A historyTail is what has to be known to read on.
type historyTail struct {
	tail
	Number   uint64          `json:"number"` // of the last message
	Position agents.Position `json:"position,omitzero"`
}

func (r *historyReader) read(above uint64, was string, fn func(*search.Document) error) (uint64, string, error) {
	var t historyTail
	if above > 0 && strictjson.Unmarshal([]byte(was), &t) != nil {
		return 0, "", search.ErrChanged
	}
	if t.Open == nil {
		t.Open = map[string]openUse{}
	}
	at, err := r.items(t.Position, func(item *agents.Item) error {
		if item.Again && above > 0 {
			return search.ErrChanged
		}
		return t.item(r.hide, item.Message, fn)
	})
	if err != nil {
		return 0, "", err
	}
	t.Position = at
	next, err := strictjson.Marshal(t)
	return 0, string(next), err
}

// reread reads a history whose messages may change or go: opencode writes an answer while it comes, and removes
// what is undone. It reads from the beginning, and compares what was read before by its hash.
func (r *historyReader) reread(above uint64, was string, fn func(*search.Document) error) (uint64, string, error) {
	var t historyTail
	if above > 0 && strictjson.Unmarshal([]byte(was), &t) != nil {
		return 0, "", search.ErrChanged
	}
	if t.Open == nil {
		t.Open = map[string]openUse{}
	}
	sum := sha256.New()
	digest := func() string { return hex.EncodeToString(sum.Sum(nil)) }
	n, known := uint64(0), t.Number
	_, err := r.items(agents.Position{}, func(item *agents.Item) error {
		if item.Message == nil {
			return nil
		}
		data, err := strictjson.Marshal(item.Message)
		if err != nil {
			return err
		}
		_, _ = sum.Write(data)
		switch n++; {
		case n == known && digest() != t.Print:
			return search.ErrChanged
		case n <= known:
			return nil
		}
		return t.item(r.hide, item.Message, fn)
	})
	if err == nil && n < known {
		err = search.ErrChanged
	}
	if err != nil {
		return 0, "", err
	}
	t.Print = digest()
	next, err := strictjson.Marshal(t)
	return 0, string(next), err
}

// items calls fn with what a history has behind a position, and returns how far that goes.
func (r *historyReader) items(from agents.Position, fn func(*agents.Item) error) (agents.Position, error) {
	reader, err := r.h.Open(from)
	if err != nil {
		return from, err
	}
	defer reader.Close()
	for {
		items, err := reader.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return reader.Position(), nil
		}
		if err != nil {
			return from, err
		}
		for i := range items {
			if err := fn(&items[i]); err != nil {
				return from, err
			}
		}
	}
}

// item is a message, with its credentials hidden before the JSON around them is taken off, which says
// what they are.
func (t *historyTail) item(hide *redact.Redactor, m *session.Message, fn func(*search.Document) error) error {
	if m == nil {
		return nil
	}
	t.Number++
	clean := *m
	clean.Content = hidden(hide, m.Content)
	clean.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range clean.ToolCalls {
		clean.ToolCalls[i].Arguments = hidden(hide, clean.ToolCalls[i].Arguments)
	}
	return t.message(t.Number, &clean, fn)
}

func hidden(hide *redact.Redactor, v strictjson.Value) strictjson.Value {
	if len(v) == 0 {
		return v
	}
	clean, _, err := hide.JSON(v)
	if err != nil {
		return nil // it is no JSON
	}
	return clean
}
