package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// maxEvent bounds what an agent gives to a hook, in bytes.
const maxEvent = 16 << 20

var (
	// hookPatience is how long an agent waits for its hook at most, whatever the store does. What
	// takes longer is finished by a process that the agent does not wait for. A prompt has more: what the agent
	// changes before the files are kept would count as of before it. A session's end has less: the agent kills
	// its hooks after 1.5 seconds.
	promptPatience, hookPatience, endPatience = 5 * time.Second, 2 * time.Second, time.Second
)

func newHook(a *app) *cobra.Command {
	h := hookCall{app: a}
	cmd := &cobra.Command{
		Use:   "hook AGENT",
		Short: "Keep what an agent tells by its hooks: called by the agent, see lopen plugin",
		Long: `Keep what an agent, claude or codex, tells by its hooks: one event as JSON on stdin.
Called by the agent, see lopen plugin. Where you have not typed lopen init or run, or inside a run of
lopen, it does nothing. The agent never waits for longer than five seconds, but for a check; the rest
is done after that. Whatever is wrong, the agent goes on, and the person is told.

With the setting gate, the end of a turn runs the setting check, if you approved it: its output
goes back to the agent, at most three times a turn.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != agents.Claude && args[0] != agents.Codex {
				return usagef("hooks of %q are not known: give %s or %s", args[0], agents.Claude, agents.Codex)
			}
			h.agent = args[0]
			if h.pid != 0 {
				return h.keep(cmd.Context())
			}
			return h.front(cmd.Context())
		},
	}
	cmd.Flags().IntVar(&h.pid, "for", 0, "")
	_ = cmd.Flags().MarkHidden("for")
	return cmd
}

// A hookCall is one call of `lopen hook`: by the agent, or by itself as the process that the agent
// does not wait for.
type hookCall struct {
	*app
	agent string
	pid   int // the agent's process, for which the second process works; 0 in the first
	event *turns.Event
}

// A hookReply is what the second process tells the first, a line each.
type hookReply struct {
	Wait  bool   `json:"wait,omitempty"`  // a check runs, which may take its time
	Warn  string `json:"warn,omitempty"`  // for the person
	Block string `json:"block,omitempty"` // for the agent, which goes on with its turn
}

// front is what the agent waits for. It touches nothing that may hang but the project's folder,
// hands the event to a second process, and waits for that as long as the agent may.
func (h *hookCall) front(ctx context.Context) error {
	if isTerminal(h.stdin) {
		return usagef("the agent calls this, with an event on stdin; see lopen plugin")
	}
	data, err := readEvent(h.stdin)
	if err == nil {
		h.event, err = turns.Parse(data)
	}
	if err != nil {
		return h.reply(hookReply{Warn: err.Error()})
	}
	if concerns, warn := h.concerns(); !concerns {
		return h.reply(hookReply{Warn: warn})
	}
	if !turns.Detaches {
		return h.inline(ctx)
	}
	w, err := turns.Detach(h.secondArgs(), h.where(), h.environ, data)
	if err != nil {
		return h.reply(hookReply{Warn: err.Error()})
	}
	defer w.Close()
	return h.await(w)
}

// readEvent reads an event to its end: that of the input, or of the line. An agent may leave the
// input open behind it.
func readEvent(r io.Reader) (data []byte, err error) {
	for chunk := make([]byte, 64<<10); len(data) <= maxEvent; {
		n, err := r.Read(chunk)
		data = append(data, chunk[:n]...)
		if errors.Is(err, io.EOF) || err == nil && bytes.HasSuffix(data, []byte("}\n")) && strictjson.Check(data) == nil {
			return data, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read what the agent gives to the hook: %w", err)
		}
	}
	return nil, fmt.Errorf("what the agent gave to the hook has more than %d bytes", maxEvent)
}

// secondArgs are those of the second process.
func (h *hookCall) secondArgs() []string {
	args := slices.Clone(h.args)
	return append(args, "--for", strconv.Itoa(max(turns.AgentProcess(), 1)))
}

// where is the folder that the event is about.
func (h *hookCall) where() string {
	if dir := h.getenv("CLAUDE_PROJECT_DIR"); h.agent == agents.Claude && filepath.IsAbs(dir) {
		return dir
	}
	return h.event.Cwd
}

// concerns reports whether the event is of a project that this user wants kept, and not of an agent that a
// run started, whose work the run itself keeps; warn is for the person if it is not. From then on this process
// is in the folder that the event is about.
func (h *hookCall) concerns() (concerns bool, warn string) {
	switch h.event.Name {
	case turns.SessionStart, turns.UserPromptSubmit, turns.Stop, turns.StopFailure, turns.Interrupt, turns.SessionEnd:
	default:
		return false, ""
	}
	dir := h.where()
	if h.getenv("LOPEN_SESSION_ID") != "" || !filepath.IsAbs(dir) || os.Chdir(dir) != nil {
		return false, ""
	}
	home, _ := h.search(dir)
	if h.forbidden(home, dir) {
		return false, h.gone()
	}
	if h.judges() {
		return true, ""
	}
	if !holds(home, lifecycle.Dir) {
		return false, h.gone()
	}
	return h.wanted(home)
}

// judges reports whether the event ends a turn that a check is to judge, whatever is there of its store: the agent may have
// taken that away, or put another one in its place.
func (h *hookCall) judges() bool {
	g := h.mark().Agreed()
	return h.event.Name == turns.Stop && g != nil && g.On
}

// wanted reports whether this user has typed lopen init or run in a project: its .lopen may have come with a clone. If they
// have not, warn says once how.
func (h *hookCall) wanted(home string) (wanted bool, warn string) {
	approvals, err := h.approvals()
	if err != nil {
		return false, fmt.Sprintf("nothing of this session is kept: %v", err)
	}
	here, err := approvals.Here(home)
	if err != nil {
		return false, fmt.Sprintf("nothing of this session is kept: %v", err)
	}
	if here.Same(here.Kept) {
		return true, ""
	}
	first := false
	if err := approvals.SetHere(home, func(h *trust.Here) { first = h.Tell() }); err != nil || !first {
		return false, ""
	}
	return false, fmt.Sprintf("nothing of this session is kept: the %s in %s may be somebody else's, as you have typed neither init nor run there; to keep what comes: lopen init", lifecycle.Dir, shown(home))
}

// mark is the one of the agent's session.
func (h *hookCall) mark() turns.Mark {
	dir, err := trust.DefaultDir(h.getenv)
	if err != nil { // nothing is marked where the user has no folder
		return ""
	}
	return turns.MarkOf(dir, h.agent, h.event.Session)
}

// gone tells of a store that had the session and was removed, once.
func (h *hookCall) gone() string {
	m := h.mark()
	project := m.Project()
	if project == "" || holds(project, lifecycle.Dir) {
		return ""
	}
	m.Clear()
	return fmt.Sprintf("%s is gone, and with it what was kept of this session; to keep what comes: lopen init", shown(filepath.Join(project, lifecycle.Dir)))
}

// await passes on what the second process replies.
func (h *hookCall) await(w *turns.Worker) error {
	patience := hookPatience
	switch h.event.Name {
	case turns.SessionStart:
		return nil
	case turns.UserPromptSubmit:
		patience = promptPatience
	case turns.SessionEnd:
		patience = endPatience
	}
	w.Limit(patience)
	for {
		line, err := w.Line()
		reply := hookReply{}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && h.event.Name == turns.UserPromptSubmit:
			return h.reply(hookReply{Warn: "the files are still being kept: what the agent changes first may count as of before its prompt"})
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return h.reply(hookReply{Warn: "the process that keeps the event ended at once; look at lopen doctor"})
		case strictjson.Unmarshal(line, &reply) != nil:
			return nil
		case reply.Wait:
			w.Limit(0)
			continue
		}
		return h.reply(reply)
	}
}

// reply tells the agent, by what it reads of a hook. The agent shows both texts to the person.
func (h *hookCall) reply(r hookReply) error {
	var out struct {
		Decision string `json:"decision,omitempty"`
		Reason   string `json:"reason,omitempty"`
		Message  string `json:"systemMessage,omitempty"`
	}
	if r.Warn != "" {
		out.Message = plain.Told("lopen: " + r.Warn)
	}
	if r.Block != "" {
		out.Decision, out.Reason = "block", plain.Told(r.Block)
	}
	if out.Message == "" && out.Decision == "" {
		return nil
	}
	data, err := strictjson.MarshalShown(out)
	if err == nil {
		_, err = fmt.Fprintf(h.stdout.JSON(), "%s\n", bytes.TrimSpace(data))
	}
	return err
}
