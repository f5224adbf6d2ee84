package turns

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Mark says, outside of the project, that a session of an agent is kept there: so it is noticed when the
// store is removed, as git clean does it. A Mark that cannot be written is none.
type Mark string

// MarkOf returns the Mark of an agent's session in the user's folder for states of programs.
func MarkOf(dir, agent, of string) Mark {
	return Mark(filepath.Join(dir, "turns", fmt.Sprintf("%s-%.16x", agent, sha256.Sum256([]byte(of)))))
}

// Project returns the folder in which the session is kept, or "".
func (m Mark) Project() string {
	project, _ := os.ReadFile(string(m)) // there is none for most sessions
	return string(project)
}

// Set notes the project.
func (m Mark) Set(project string) {
	if m == "" || m.Project() == project {
		return
	}
	if err := os.MkdirAll(filepath.Dir(string(m)), 0o700); err == nil {
		_ = os.WriteFile(string(m), []byte(project), 0o600)
	}
}

// Clear removes the Mark.
func (m Mark) Clear() {
	_ = os.Remove(string(m))
	_ = os.Remove(m.agreed())
}

// A Gate is what judges a turn.
type Gate struct {
	On    bool   `json:"on"`
	Check string `json:"check"`
	Own   bool   `json:"own"`            // the check is the user's, and none of the project's
	Sent  int    `json:"sent,omitempty"` // how often it sent a turn back whose session is gone

	Store   string          `json:"store,omitempty"` // the path of the .lopen that keeps the turn
	Agent   string          `json:"agent,omitempty"`
	Session string          `json:"session,omitempty"` // of the agent
	Holder  *session.Holder `json:"holder,omitempty"`  // the agent's process, nil if it is not known
}

// gates is the folder beside Marks with the Gates of turns. The tracker of files never looks into one of this name, so that a
// Gate is no change where the user's home is the project.
const gates = ".lopen"

// agreed is the file with the Gate of the turn.
func (m Mark) agreed() string {
	return filepath.Join(filepath.Dir(string(m)), gates, filepath.Base(string(m))+".gate")
}

// Agree notes the Gate with which a turn begins: what its agent changes after that decides nothing.
func (m Mark) Agree(g Gate) {
	data, err := strictjson.Marshal(g)
	if m == "" || err != nil {
		return
	}
	if err := os.MkdirAll(filepath.Dir(m.agreed()), 0o700); err == nil {
		_ = os.WriteFile(m.agreed(), data, 0o600)
	}
}

// Over says that the turn has ended.
func (m Mark) Over() { _ = os.Remove(m.agreed()) }

// Begun returns the Gates of all turns that were noted in the user's folder for states of programs, and have not ended.
func Begun(dir string) (all []Gate) {
	paths, _ := filepath.Glob(filepath.Join(dir, "turns", gates, "*.gate"))
	for _, path := range paths {
		if g := Mark(filepath.Join(dir, "turns", strings.TrimSuffix(filepath.Base(path), ".gate"))).Agreed(); g != nil && g.Holder != nil {
			all = append(all, *g)
		}
	}
	return all
}

// Agreed returns the Gate with which the turn began, nil if that is not known.
func (m Mark) Agreed() *Gate {
	data, err := os.ReadFile(m.agreed())
	g := &Gate{}
	if m == "" || err != nil || strictjson.Unmarshal(data, g) != nil {
		return nil
	}
	return g
}

// later is the file beside a Mark with what the person is told by the next hook.
func (m Mark) later() string { return string(m) + ".later" }

// Later notes what a hook could not tell any more.
func (m Mark) Later(text string) {
	if m == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(string(m)), 0o700); err == nil {
		_ = os.WriteFile(m.later(), []byte(text), 0o600)
	}
}

// Left returns what Later noted, once.
func (m Mark) Left() string {
	text, err := os.ReadFile(m.later())
	if err == nil {
		_ = os.Remove(m.later())
	}
	return string(text)
}
