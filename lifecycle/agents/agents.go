package agents

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// The agents whose histories can be read.
const (
	Claude   = "claude"
	Codex    = "codex"
	OpenCode = "opencode"
)

// moduleID is the number of characters of an agent's session ID in the name of its module.
const moduleID = 8

// Module returns the module of the session that stands for a session of an agent. Two sessions of
// an agent may have the same module; then Header.AgentSession tells them apart.
func Module(agent, id string) string {
	id = strings.ToLower(strings.TrimPrefix(id, "ses_")) // which all of opencode's begin with
	short := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, id)
	if short == "" {
		short = "0"
	}
	return agent + "-" + short[:min(len(short), moduleID)]
}

// IsModule reports whether a module has a name as [Module] makes them. A plan may have such a name as well.
func IsModule(module string) bool {
	agent, short, _ := strings.Cut(module, "-")
	return slices.Contains([]string{Claude, Codex, OpenCode}, agent) && Module(agent, short) == module
}

// Folders returns where an agent keeps its histories, whether or not they exist. getenv has the
// environment, and home is the user's folder. The error names the agents there are, or a variable whose folder is
// no absolute path.
func Folders(agent, home string, getenv func(string) string) ([]string, error) {
	places := map[string]struct {
		variable, otherwise string
		below               []string
	}{
		Claude:   {"CLAUDE_CONFIG_DIR", ".claude", []string{"projects"}},
		Codex:    {"CODEX_HOME", ".codex", []string{"sessions", "archived_sessions"}},
		OpenCode: {"XDG_DATA_HOME", ".local/share", []string{"opencode"}},
	}
	p, ok := places[agent]
	if !ok {
		return nil, unknown(agent)
	}
	at := getenv(p.variable)
	if at == "" {
		at = filepath.Join(home, filepath.FromSlash(p.otherwise))
	}
	if !filepath.IsAbs(at) {
		return nil, fmt.Errorf("%q is not an absolute path: set HOME or %s", at, p.variable)
	}
	var all []string
	for _, below := range p.below {
		all = append(all, filepath.Join(at, below))
	}
	return all, nil
}

func unknown(agent string) error {
	return fmt.Errorf("histories of %q cannot be read: give %s, %s or %s", agent, Claude, Codex, OpenCode)
}

// A History is one session of an agent.
type History struct {
	Agent    string
	ID       string // the agent's ID of the session
	Path     string // of the file that it is in, or of its first subagent's
	Bytes    int64  // of all its files, as they are stored; 0 in a database
	Modified time.Time

	files []file
	head  *Head // nil until it is read
}

// A file is one of a history's.
type file struct {
	path   string
	name   string // in a Position
	thread string // the subagent whose it is; "" for the session's own
	size   int64
	db     *database // that has the session with this name; nil for a file of lines
}

// An Item is what a record of a history becomes.
type Item struct {
	Message *session.Message // nil for an event
	Event   strictjson.Value // one JSON object; nil for a message
	Usage   *session.Usage   // what was used since the item before; nil for nothing
	// Again is set if a file of the history was ever rewritten, so that the item may be known.
	Again bool
}

// A Head is what a history says of itself in its first lines.
type Head struct {
	Cwd    string // the folder that the agent worked in
	Remote string // the git repository that it was cloned from, where the agent notes it
	Root   string // the first commit of the git repository, where the agent notes it
	Title  string // the first words of the person
}
