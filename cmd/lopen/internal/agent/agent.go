package agent

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// An Input is how the prompt reaches an agent.
type Input string

// The inputs. Whichever it is, LOPEN_PROMPT_FILE names a file with the prompt.
const (
	InputStdin    Input = "stdin"
	InputArgument Input = "argument" // the last one
	InputFile     Input = "file"     // LOPEN_PROMPT_FILE alone
)

// A Profile says how an agent is started, asked and understood. Those of builtIn are
// built in; a recipe of the user's config has the same fields, and nothing is added to
// what it says.
type Profile struct {
	Name   string   `json:"-"`
	Start  []string `json:"start"`            // the command line that starts it
	Prompt Input    `json:"prompt,omitempty"` // "" is InputStdin
	Events string   `json:"events,omitempty"` // whose events it prints: claude, codex, opencode; "" or text is none
	// Resume are the arguments that continue a session of its own; {session} stands for
	// its ID. nil means that it has none.
	Resume []string `json:"resume,omitempty"`
	Open   []string `json:"open,omitempty"` // the command line that opens a session for a person; {session} again
	// Ready is a command line that exits 0 when the agent can work: it is asked before the
	// first task. nil asks nothing.
	Ready []string `json:"ready,omitempty"`
	Login string   `json:"login,omitempty"` // what a person types to log in

	built *built // nil of a recipe
}

// built is what only a built-in profile has.
type built struct {
	// choose adds the flags that the profile needs to a.line, which is argv, and notes on
	// the agent what a person has typed.
	choose func(a *Agent, check string) (note string)
	// launch extends a.line, a copy of which it is given, for one attempt.
	launch func(a *Agent, line []string, l Launch) []string
}

// None is the name of the profile that knows nothing: events are text.
const None = "none"

// builtIn returns the built-in profiles: claude, codex, opencode.
func builtIn() []Profile { return []Profile{claude(), codex(), opencode()} }

// Start is the command line that starts an agent by its name.
func Start(name string, recipes map[string]Profile) ([]string, error) {
	p, err := find(name, recipes)
	return p.Start, err
}

// find returns a profile by its name; a recipe comes before a built-in one.
func find(name string, recipes map[string]Profile) (Profile, error) {
	if p, ok := recipes[name]; ok {
		p.Name = name
		return p, nil
	}
	names := slices.Collect(maps.Keys(recipes))
	for _, p := range builtIn() {
		if p.Name == name {
			return p, nil
		}
		if _, replaced := recipes[p.Name]; !replaced {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return Profile{}, fmt.Errorf("no agent is called %q: there are %s, and %s for a command that is not looked into", name, strings.Join(names, ", "), None)
}

// An Agent is a profile with the command line that a person typed or that it has.
type Agent struct {
	profile Profile
	argv    []string // as it was typed
	line    []string // argv and added
	added   []string
	program int    // the index of the agent itself in line; -1 when a wrapper hides it
	own     bool   // the person chose the agent's session: none is resumed or named
	capped  bool   // the person bounded the cost of a start
	run     int    // of opencode: how far behind the program the word run stands
	model   string // as it was typed, of an agent whose events do not name it
}

// Choose binds a profile to a command line. name is that of --agent: "" finds the profile
// by the base name of argv[0], None finds none, another one must be known or among recipes,
// or the error lists them. An empty argv is the profile's Start. Flags
// that the profile needs and that argv lacks are added: see Added. check is what judges
// tasks; where the agent asks for permissions, a simple one is granted as exactly that
// command. note says what a person should know about that, or is "".
func Choose(name string, argv []string, recipes map[string]Profile, check string) (a *Agent, note string, err error) {
	var p Profile
	switch {
	case name == None || name == "" && len(argv) == 0:
		p = Profile{Name: None}
	case name == "":
		if p, err = find(base(argv[0]), recipes); err != nil {
			p = Profile{Name: None}
		}
	default:
		if p, err = find(name, recipes); err != nil {
			return nil, "", err
		}
	}
	if len(argv) == 0 {
		argv = p.Start
	}
	a = &Agent{profile: p, argv: slices.Clone(argv), line: slices.Clone(argv), program: -1}
	if p.built != nil && len(argv) > 0 {
		a.program = slices.IndexFunc(argv, func(s string) bool { return base(s) == p.Start[0] })
		note = p.built.choose(a, check)
		if a.program == 0 && a.profile.Ready != nil {
			a.profile.Ready = append([]string{argv[0]}, p.Ready[1:]...)
		} else {
			a.profile.Ready = nil // a wrapper may bring what it needs
		}
	}
	return a, note, nil
}

// base is the name of a program without its folder.
func base(program string) string { return strings.TrimSuffix(filepath.Base(program), ".exe") }

// add adds arguments behind the first n that follow the program, where no other flag takes
// them for its values; at the end where a wrapper hides the program.
func (a *Agent) add(n int, args ...string) {
	if len(args) == 0 {
		return
	}
	at := len(a.line)
	if a.program >= 0 {
		at = min(a.program+1+n, at)
	}
	a.line = slices.Insert(a.line, at, args...)
	a.added = append(a.added, args...)
}

// Name is the profile's: claude, codex, a recipe's, or None.
func (a *Agent) Name() string { return a.profile.Name }

// Knows says whether the agent's events are known: what a model printed can be told from
// what went wrong.
func (a *Agent) Knows() bool { return a.profile.Events != "" && a.profile.Events != "text" }

// Partial is how a line begins whose event has a piece of a message that a later event has
// as a whole, "" for none. A credential in pieces is not recognised.
func (a *Agent) Partial() string {
	if a.profile.Events == "claude" {
		return `{"type":"stream_event"`
	}
	return ""
}

// Argv is the command line as it was typed, or the profile's Start: what is approved and
// stored. Launch returns what runs.
func (a *Agent) Argv() []string { return a.argv }

// Added are the arguments that Choose added to what was typed.
func (a *Agent) Added() []string { return a.added }

// Ready is a command line to ask whether the agent can work, or nil.
func (a *Agent) Ready() []string { return a.profile.Ready }

// Login is what a person types to log in, or "".
func (a *Agent) Login() string { return a.profile.Login }

// Open is the command line that opens a session of the agent for a person, or nil.
func (a *Agent) Open(session string) []string {
	if !sessionID(session) {
		return nil
	}
	return fill(a.profile.Open, session)
}

// A Launch is what one attempt adds to an agent's command line.
type Launch struct {
	Session string  // of the agent: to be resumed, or with New to be made
	New     bool    // Session is the one that NewSession gave
	Prompt  string  // for InputArgument
	Budget  float64 // USD that this attempt may cost; 0 is no limit. Agents that take none ignore it.
}

// Launch is the command line of one attempt: Argv, what Choose added, and what the attempt
// adds. It does not change the agent. A Session of an agent that does not resume, or that
// is none, is ignored.
func (a *Agent) Launch(l Launch) []string {
	line := slices.Clone(a.line)
	if !a.Resumes() || !sessionID(l.Session) {
		l.Session, l.New = "", false
	}
	switch {
	case a.profile.built != nil:
		line = a.profile.built.launch(a, line, l)
	case l.Session != "" && !l.New:
		line = append(line, fill(a.profile.Resume, l.Session)...)
	}
	if a.profile.Prompt == InputArgument {
		line = append(line, l.Prompt)
	}
	return line
}

// Stdin says whether the prompt goes to stdin.
func (a *Agent) Stdin() bool { return a.profile.Prompt == "" || a.profile.Prompt == InputStdin }

// Resumes says whether the agent can continue a session of its own.
func (a *Agent) Resumes() bool { return a.profile.Resume != nil && !a.own }

// NewSession returns an ID that the agent takes for a session that it is to make; "" of
// one that chooses its IDs itself: its Report has it. An ID is good for one start: claude
// refuses one that it has seen.
func (a *Agent) NewSession() string {
	if a.profile.built == nil || a.profile.Name != "claude" || !a.Resumes() {
		return ""
	}
	return uuid.NewString()
}

// fill puts a session's ID in the places of {session}.
func fill(args []string, session string) []string {
	args = slices.Clone(args)
	for i, s := range args {
		args[i] = strings.ReplaceAll(s, placeholder, session)
	}
	return args
}

const placeholder = "{session}"

// sessionID says that a text can be an agent's name of a session: what an event brought is
// an argument later, and a command that a person copies.
func sessionID(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '-' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
	})
}
