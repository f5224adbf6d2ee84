package find

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/writer/plain"
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
		var library *agents.Library
		if err == nil {
			library, err = agents.Open(ctx, agent, a.Temp, paths...)
		}
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
		h.Open = plain.Quote("lopen", "session", "import", "--from", h.Agent, h.Path)
		if a.Open == nil || hidden > 0 || strings.HasPrefix(h.Session, "-") { // which the agent would take for a flag
			return
		}
		info, err := os.Stat(head.Cwd)
		if argv := a.Open(h.Agent, h.Session); err == nil && info.IsDir() && filepath.IsAbs(head.Cwd) && len(argv) > 0 {
			h.Open = plain.Quote("cd", head.Cwd) + " && " + plain.Quote(argv...)
		}
	}
}

func keyOf(h *agents.History) string { return h.Agent + " " + h.Path + " " + h.ID }
