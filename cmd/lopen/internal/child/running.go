package child

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lopen-dev/lopen/writer/process"
)

// killTime bounds how long the end of what was killed is waited for, and beginTime how
// long the begin of what is ended or stopped: who is the command's own is known when
// Command.Started has recorded the command, while that lives.
const (
	killTime  = 5 * time.Second
	beginTime = time.Second
)

// running is what Run has started and what has not ended.
var running struct {
	mu   sync.Mutex
	all  map[*program]struct{} // Guarded by mu.
	over atomic.Bool           // KillAll was called.
}

// newProcess is a command that is about to begin.
func newProcess(lock *process.Lock) *program {
	p := &program{lock: lock, begun: make(chan struct{}), ended: make(chan struct{}), unwatched: make(chan struct{}), freeze: make(chan chan struct{})}
	running.mu.Lock()
	defer running.mu.Unlock()
	if running.all == nil {
		running.all = map[*program]struct{}{}
	}
	running.all[p] = struct{}{}
	return p
}

// remove forgets a command that has ended, or has not begun.
func (p *program) remove() {
	running.mu.Lock()
	defer running.mu.Unlock()
	delete(running.all, p)
}

// KillAll ends all commands of this process at once, with SIGKILL to their groups and to
// what they started in others, and returns when they are gone, after five seconds at the
// latest. What Run starts from then on is killed as soon as it has begun. It returns how
// many commands it ended, and the PIDs of what still holds a command's lock and was left
// alone. Anybody may call it, at any time.
func KillAll() (n int, left []int) {
	running.over.Store(true) // and then all, so that what begins is in it or sees this
	running.mu.Lock()
	all := slices.Collect(maps.Keys(running.all))
	running.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	haveBegun(all)
	orderKill()
	for _, p := range all {
		p.kill()
	}
	for _, p := range all {
		p.gone(ctx)
		left = append(left, p.left()...)
	}
	slices.Sort(left)
	return len(all), slices.Compact(left)
}

// Killed says whether KillAll was called: what is started from then on is killed.
func Killed() bool { return running.over.Load() }

// haveBegun waits until commands have begun, or could not: a keeper starts its command
// before this process knows.
func haveBegun(all []*program) {
	late := time.NewTimer(beginTime)
	defer late.Stop()
	for _, p := range all {
		select {
		case <-p.begun:
		case <-late.C:
			return
		}
	}
}

// gone waits until nothing of what was killed lives, or until ctx ends.
func (p *program) gone(ctx context.Context) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for p.lives() && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// lives says whether something of the command's group lives, or of what it started
// elsewhere, or is about to begin.
func (p *program) lives() bool {
	if pgid := p.leader(); pgid != 0 {
		return process.GroupLives(pgid) || len(p.strays()) > 0
	}
	running.mu.Lock()
	defer running.mu.Unlock()
	_, starting := running.all[p]
	return starting
}

// endOnPanic, deferred, has the command not outlive a panic of the goroutine that waits for it.
// Others go on: the program may recover.
func (p *program) endOnPanic() {
	if v := recover(); v != nil {
		ctx, cancel := context.WithTimeout(context.Background(), killTime)
		defer cancel()
		p.kill()
		p.gone(ctx)
		panic(v)
	}
}

// endOnPanic, deferred, has no command outlive a panic of its goroutine. Those of other
// goroutines are the keeper's business.
func endOnPanic() {
	if v := recover(); v != nil {
		KillAll()
		panic(v)
	}
}

// WhileStopped stops all commands, calls stop, which is to return when this process goes
// on after it was stopped, and has them continue. Their time limits do not count the time
// between.
func WhileStopped(stop func()) {
	running.mu.Lock()
	defer running.mu.Unlock()
	var frozen []chan struct{}
	all := slices.Collect(maps.Keys(running.all))
	haveBegun(all)
	defer func() {
		for _, p := range all {
			p.proceed()
		}
		for _, thaw := range frozen {
			thaw <- struct{}{}
		}
	}()
	for _, p := range all {
		if p.leader() == 0 {
			continue // it begins when this process continues
		}
		thaw := make(chan struct{})
		select {
		case p.freeze <- thaw:
			<-thaw
			frozen = append(frozen, thaw)
		case <-p.unwatched: // it is being ended
		}
		p.pause()
	}
	stop()
}
