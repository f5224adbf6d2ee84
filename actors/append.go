package actors

// Append accepts entries, in order, all or none, without waiting. Each is part of
// one commit and none is ever dropped: what is accepted and not durable is held in
// memory, up to Options.Backlog bytes, and beyond that Append says ErrBacklogFull.
//
// A nil error means accepted, not durable: that is Sync's to say. While the actor is
// paused the entries are accepted all the same and a [*PausedError] is returned. After
// Close has begun they are not taken, with ErrClosed.
func (a *Actor) Append(entries ...Entry) error {
	n := cost(entries)
	a.mu.Lock()
	// Close sets closing before run takes the last backlog, under this lock.
	if a.closing.Load() {
		a.mu.Unlock()
		return ErrClosed
	}
	if a.held+n > a.bound {
		a.mu.Unlock()
		return ErrBacklogFull
	}
	a.backlog = append(a.backlog, entries...)
	a.held += n
	a.mu.Unlock()
	select {
	case a.appended <- struct{}{}:
	default: // known already
	}
	return a.Paused() // not ErrClosed: they were taken, whatever began since
}

// takeBacklog makes what was appended part of the next commit.
func (a *Actor) takeBacklog() {
	a.mu.Lock()
	a.pending.Entries = append(a.pending.Entries, a.backlog...)
	a.backlog = nil
	a.mu.Unlock()
}

// release gives room for more when entries are durable.
func (a *Actor) release(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	a.mu.Lock()
	a.held -= cost(entries)
	a.mu.Unlock()
}

// allDurable says that no State and no entry waits.
func (a *Actor) allDurable() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held == 0 && a.newest.Load() == a.durable.Load()
}
