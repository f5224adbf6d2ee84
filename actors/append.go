package actors

// Append accepts entries, in order, all or none, without waiting for the disk. Each is
// part of exactly one commit, and none is dropped. Entries that are not durable yet are
// held in memory, up to Options.Backlog bytes; beyond that Append accepts none and
// returns ErrBacklogFull.
//
// A nil error means accepted, not durable: call Sync for that. A paused actor accepts
// the entries too, and Append returns a [*PausedError]. After Close has begun Append
// accepts none and returns ErrClosed.
func (a *Actor) Append(entries ...Entry) error {
	n := cost(entries)
	a.mu.Lock()
	// Close sets closing before run takes the last backlog, and run does that under mu.
	// So entries that are accepted here are in the last commit at the latest.
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
	default: // a signal is waiting already
	}
	return a.Paused() // not ErrClosed: the entries were accepted, even if Close has begun since
}

// takeBacklog moves the newest State and the backlog into the next commit. Under the lock no entry is
// appended between the two, so that every entry that the State names is in this commit or an earlier one.
func (a *Actor) takeBacklog() {
	a.mu.Lock()
	a.pending.State = a.newest.Load()
	a.pending.Entries = append(a.pending.Entries, a.backlog...)
	a.backlog = nil
	a.mu.Unlock()
}

// release frees the room that durable entries took in the backlog.
func (a *Actor) release(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	a.mu.Lock()
	a.held -= cost(entries)
	a.mu.Unlock()
}

// allDurable reports whether no State and no entry waits for a commit.
func (a *Actor) allDurable() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held == 0 && a.newest.Load() == a.durable.Load()
}
