package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/histories"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

const (
	// keepPatience bounds how long the second process waits for the session, which the one of an
	// earlier event may still have open.
	keepPatience = time.Minute
	// lastWord is how long the end of a session waits for the hook that ends its turn. The agent
	// starts both at the same time.
	lastWord = 500 * time.Millisecond
	pollHeld = 5 * time.Millisecond
	// makeWay is how long the session is left to others between two parts of a transcript.
	makeWay = 4 * pollHeld
)

// A keeping is what the second process has in hand.
type keeping struct {
	*hookCall
	store  *lifecycle.Store
	home   string // the project's folder
	tree   string // the folder that the agent works in: the project's, or a linked work tree's
	values *settings.Values
	holder *session.Holder // nil if the agent's process is not known
	alone  <-chan struct{} // closed when the agent waits no more
	more   bool            // there is more in the transcript than was taken over
	behind bool            // the event is kept, and the rest is taken over where nobody else waits
	say    func(hookReply)
	warned string // what the person is told with the next reply
}

// keep is the second process: it keeps the event.
func (h *hookCall) keep(ctx context.Context) error {
	data, out, alone, err := turns.Received()
	if err != nil {
		return usagef("--for is for lopen itself: %w", err)
	}
	defer out.Close()
	return h.keepEvent(ctx, data, alone, func(r hookReply) {
		if line, err := strictjson.Marshal(r); err == nil {
			_, _ = out.Write(append(line, '\n')) // nobody may read it any more
		}
	})
}

// inline is front and keep in one, where no process can be left behind.
func (h *hookCall) inline(ctx context.Context) error {
	data, err := strictjson.Marshal(h.event)
	if err != nil {
		return err
	}
	h.pid = turns.AgentProcess()
	var last hookReply
	err = h.keepEvent(ctx, data, nil, func(r hookReply) { last = r })
	return errors.Join(err, h.reply(last))
}

// bothTold is what the person is told of two texts: what both say once.
func bothTold(first, second string) string {
	if strings.Contains(first, second) {
		return first
	}
	return strings.Trim(first+"\n"+second, "\n")
}

// keepEvent keeps an event, and says what there is to say exactly once.
func (h *hookCall) keepEvent(ctx context.Context, data []byte, alone <-chan struct{}, say func(hookReply)) (err error) {
	said, came := false, time.Now()
	k := &keeping{hookCall: h, alone: alone}
	k.say = func(r hookReply) {
		if !said {
			if said = !r.Wait; said {
				r.Warn = bothTold(k.warned, r.Warn)
			}
			say(r)
		}
	}
	defer func() {
		if err != nil {
			h.logger.Error().Err(err).Msg("the event was not kept")
			if said { // the agent has its reply: the next hook tells it
				h.mark().Later(k.trouble(err))
			}
			k.say(hookReply{Warn: k.trouble(err)})
		}
		k.say(hookReply{})
	}()
	if h.event, err = turns.Parse(data); err != nil {
		return err
	}
	h.event.Came = came
	k.warned = h.mark().Left()
	h.logger.Info().Str("event", h.event.Name).Str("agent", h.agent).Str("agent_session", h.event.Session).Int("pid", h.pid).Msg("event of an agent")
	begun, judges := h.mark().Agreed(), h.judges()
	if err := k.openStore(); err != nil && judges {
		k.warn(fmt.Sprintf("nothing of this session is kept: %v", err))
		return k.judge(ctx, begun)
	} else if err != nil {
		return fmt.Errorf("nothing of this session is kept: %w", err)
	}
	defer func() { err = errors.Join(err, closeStore(k.store)) }()
	if store, _ := lifecycle.Inside(); store != "" && git.Same(store, k.store.Path()) {
		return nil
	}
	return k.handle(ctx)
}

// openStore opens the project's store for the agent's process.
func (k *keeping) openStore() (err error) {
	if k.home, k.tree, err = k.places(); err != nil {
		return err
	}
	if k.values, err = k.projectSettings(k.home, nil); err != nil {
		return err
	}
	opts := k.storeOptions(k.home)
	if opts.Policy, err = storePolicy(k.values); err != nil {
		return err
	}
	if k.pid > 1 {
		k.holder = lifecycle.HolderOf(k.pid, k.agent)
		opts.For = k.holder
	}
	k.store, err = lifecycle.Open(k.home, opts)
	return err
}

// handle keeps the event, and then takes over what the transcript has more than one part, part by part: a hook
// that comes meanwhile gets the session, and goes on with it.
func (k *keeping) handle(ctx context.Context) error {
	err := k.handleEvent(ctx)
	for k.behind = true; err == nil && k.more && ctx.Err() == nil; {
		k.say(hookReply{})
		time.Sleep(makeWay)
		if err = k.with(ctx, false, func(t *turns.Keeper) error { return k.takeOver(ctx, t) }); errors.Is(err, lifecycle.ErrBusy) {
			return nil
		}
	}
	return err
}

func (k *keeping) handleEvent(ctx context.Context) error {
	switch k.event.Name {
	case turns.SessionStart: // of a session that is there: what an agent that was killed has left
		err := k.with(ctx, false, func(t *turns.Keeper) error {
			var err error
			if t.Sess.State().Header().ExitReason == session.ExitCrashed { // else it is compacted in a turn
				err = t.Leave(ctx)
			}
			return errors.Join(err, k.takeOver(ctx, t))
		})
		if errors.Is(err, lifecycle.ErrBusy) { // a fork is told with the ID of what it was made of
			return nil
		}
		return err
	case turns.UserPromptSubmit:
		k.settleOthers(ctx)
		return k.with(ctx, true, func(t *turns.Keeper) error {
			if t.Sess.State().Progress().Total == 0 { // once a session
				for _, text := range k.values.Ignored() {
					k.warn(text)
				}
			}
			begun := k.gateNow()
			begun.Store, begun.Agent, begun.Session, begun.Holder = k.store.Path(), k.agent, k.event.Session, k.holder
			k.mark().Agree(begun)
			err := t.Begin(ctx, k.event)
			if err != nil {
				err = fmt.Errorf("this prompt is not kept: %w", err)
			}
			if t.Sess.LostCheckpoint() {
				k.warn("the checkpoints of the prompts before are gone from .lopen/checkpoints; what comes is kept")
			}
			k.say(hookReply{Warn: k.trouble(err)})
			return errors.Join(err, k.takeOver(ctx, t))
		})
	case turns.Stop, turns.StopFailure, turns.Interrupt:
		return k.stop(ctx)
	case turns.SessionEnd:
		return k.end(ctx)
	}
	return nil
}

// stop ends a turn, or what is left of one.
func (k *keeping) stop(ctx context.Context) error {
	begun, judges, found := k.mark().Agreed(), k.judges(), false
	err := k.with(ctx, false, func(t *turns.Keeper) error {
		var err error
		if found = true; !t.Late(k.event) {
			var back bool
			if back, err = k.endTurn(ctx, t); back {
				return err
			}
		}
		k.say(hookReply{Warn: k.trouble(err)})
		return errors.Join(err, k.takeOver(ctx, t))
	})
	if err == nil && !found && judges {
		return k.judge(ctx, begun)
	}
	return err
}

// trouble is what the person is told of an error; "" for none.
func (k *keeping) trouble(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%v\n%s", err, hint(err)))
}

// warn tells the person something with the next reply.
func (k *keeping) warn(text string) { k.warned = strings.TrimPrefix(k.warned+"\n"+text, "\n") }

// endTurn ends a turn, unless its check sends it back.
func (k *keeping) endTurn(ctx context.Context, t *turns.Keeper) (back bool, err error) {
	switch k.event.Name {
	case turns.StopFailure:
		return false, k.over(t.End(ctx, record.Failed, k.event.Failure(), nil))
	case turns.Interrupt:
		return false, k.over(t.End(ctx, record.Interrupted, "", nil))
	}
	then, failure := record.Done, ""
	var check *turns.Check
	if t.InProgress() != "" {
		if g := k.agreed(k.mark().Agreed()); g.On {
			if then, failure, check, back, err = k.gate(ctx, t, g); err != nil || back {
				return back, err
			}
		}
	}
	return false, k.over(t.End(ctx, then, failure, check))
}

// over notes that the turn has ended, once its files are looked at, among which the note may be.
func (k *keeping) over(err error) error {
	k.mark().Over()
	return err
}

// end ends the agent's session.
func (k *keeping) end(ctx context.Context) error {
	finish := func(t *turns.Keeper) error {
		err := k.takeOver(ctx, t)
		k.mark().Clear()
		return errors.Join(err, t.Finish(ctx))
	}
	busy := false
	err := k.with(ctx, false, func(t *turns.Keeper) error {
		if busy = t.InProgress() != ""; busy {
			return nil
		}
		return finish(t)
	})
	if err != nil || !busy {
		return err
	}
	time.Sleep(lastWord) // what ends the turn may come now, and says more than that it was interrupted
	return k.with(ctx, false, finish)
}

// with runs fn on the session that stands for the agent's. One that is missing is made if makes is
// set; otherwise there is nothing to do.
func (k *keeping) with(ctx context.Context, makes bool, fn func(*turns.Keeper) error) error {
	module := agents.Module(k.agent, k.event.Session)
	sess, err := k.open(ctx, module, nil)
	if errors.Is(err, lifecycle.ErrNotFound) {
		k.missing(module)
		if !makes {
			return nil
		}
		sess, err = k.open(ctx, module, k.first)
	}
	if err != nil {
		return err
	}
	if makes {
		k.mark().Set(k.home)
	}
	err = fn(&turns.Keeper{Sess: sess, Agent: k.agent, Root: k.tree, Holder: k.holder, Checkpoint: k.values.Checkpoint})
	return errors.Join(err, closeStore(sess))
}

// missing tells the person why a session is not there that was kept, and moves those of its module that cannot
// be read to corrupted/: another one begins.
func (k *keeping) missing(module string) {
	infos, err := k.store.List()
	for _, info := range infos {
		if info.ID.Module != module {
			continue
		}
		if _, _, rerr := k.store.Read(info.ID); rerr != nil || info.Err != nil {
			err = openError(k.store, info.ID)
		}
	}
	m := k.mark()
	switch {
	case err != nil:
		k.warn(k.trouble(err))
	case m.Project() == k.home:
		from := "the next prompt"
		if k.event.Name == turns.UserPromptSubmit {
			from = "this prompt"
		}
		k.warn("what was kept of this session is gone; it is kept anew from " + from + " on")
	}
	m.Clear()
}

// first sets the header of a new session.
func (k *keeping) first(h *session.Header) {
	h.Origin, h.AgentName, h.Status = session.OriginHook, k.agent, session.StatusPaused
	if k.tree != k.home {
		w := session.WorktreeAt(resolved(k.home), resolved(k.tree))
		h.Worktree = &w
	}
}

// open opens the session, and waits for another process of ours that has it open. One that is
// missing is made with first, and named after the prompt, unless first is nil.
func (k *keeping) open(ctx context.Context, module string, first func(*session.Header)) (*lifecycle.Session, error) {
	wait, cancel := context.WithTimeout(ctx, keepPatience)
	defer cancel()
	tick := time.NewTicker(pollHeld)
	defer tick.Stop()
	name := histories.Name(turns.Title(k.event.Prompt))
	for {
		sess, _, err := k.store.OpenOfAgent(ctx, module, k.event.Session, name, first)
		busy := &lifecycle.BusyError{}
		if !errors.As(err, &busy) || busy.Owner.Command == k.agent || k.behind {
			return sess, err
		}
		select {
		case <-tick.C:
		case <-wait.Done():
			return nil, err
		}
	}
}

// takeOver takes what is new in the agent's transcript into the session, or a part of it.
func (k *keeping) takeOver(ctx context.Context, t *turns.Keeper) error {
	path := k.event.Transcript
	if k.more = false; !filepath.IsAbs(path) {
		return nil
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // a transcript that is not there yet, or is gone, is none
	}
	library, err := agents.Open(ctx, k.agent, "", path)
	if err != nil {
		return fmt.Errorf("take over the transcript: %w", err)
	}
	defer library.Close()
	err = errors.Join(library.Left...)
	for i := range library.Histories {
		h := &library.Histories[i]
		if h.ID != k.event.Session { // Codex tells a fork by the ID of what it is from
			continue
		}
		res := histories.Result{Agent: k.agent, ID: h.ID, Path: h.Path}
		more, cerr := histories.ContinueSome(ctx, k.store, t.Sess, h, &res)
		k.more, err = k.more || more, errors.Join(err, cerr)
		t.Sess.Logger().Info().Int("messages", res.Messages).Int("events", res.Events).Msg("transcript taken over")
	}
	return err
}

// settleOthers ends the turns of other sessions that have ended without a word: what they changed would count
// as changed by several.
func (k *keeping) settleOthers(ctx context.Context) {
	all, err := k.store.List()
	for _, info := range all {
		if info.Err == nil && info.Origin == session.OriginHook && info.Status == session.StatusActive && info.Holder != nil {
			if st, _, rerr := k.store.Read(info.ID); rerr == nil && st.Header().AgentSession != k.event.Session {
				err = errors.Join(err, k.settleTurn(ctx, st))
			}
		}
	}
	if err != nil {
		k.logger.Info().Err(err).Msg("turns of other sessions are left as they are")
	}
}

// settleNamed ends the turn of a session if it has ended without a word, or its agent has ended.
func (a *app) settleNamed(ctx context.Context, name string) error {
	var st *session.State
	if err := a.readStore(func(store *lifecycle.Store) error {
		id, err := store.Resolve(name)
		if err == nil {
			st, _, err = store.Read(id)
		}
		return err
	}); err != nil {
		return err
	}
	return a.settleTurn(ctx, st)
}

// settleTurn ends the turn that a session is held for, if the agent's transcript says that it has ended or the agent is
// gone.
func (a *app) settleTurn(ctx context.Context, st *session.State) error {
	h := st.Header()
	if h.Status != session.StatusActive || h.Holder == nil {
		return nil
	}
	event := &turns.Event{Session: h.AgentSession, Transcript: turns.Transcript(&h)}
	k := &keeping{hookCall: &hookCall{app: a, agent: h.AgentName, pid: h.Holder.PID, event: event}}
	end := (*turns.Keeper).Settle
	if !(*lifecycle.Owner)(h.Holder).Alive() {
		k.pid, end = 0, (*turns.Keeper).Leave
	}
	if err := k.openStore(); err != nil {
		return err
	}
	err := k.with(ctx, false, func(t *turns.Keeper) error {
		if err := end(t, ctx); err != nil || t.InProgress() != "" {
			return err
		}
		return k.takeOver(ctx, t)
	})
	return errors.Join(err, closeStore(k.store))
}
