package actors

import "time"

// commits sums up the commits since the last publication was begun.
type commits struct {
	first, last time.Time // zero when there was no commit
	soon        bool      // a commit asked to be published at once
}

func (c *commits) add(now time.Time, soon bool) {
	if c.first.IsZero() {
		c.first = now
	}
	c.last, c.soon = now, c.soon || soon
}

// publishDue starts a publication of the last commit when one is due, and arms the timer
// when it is too early. Commits continue while a publication runs, so that a caller who
// waits for a commit does not wait for the readable files.
func (a *Actor) publishDue() {
	if a.unshown.first.IsZero() || a.due != nil && !a.unshown.soon || a.published != nil || a.paused.Load() != nil {
		return
	}
	now := time.Now()
	at := a.unshown.last.Add(a.quiet)
	if latest := a.unshown.first.Add(a.every); at.After(latest) {
		at = latest
	}
	if next := a.shownAt.Add(a.every); at.Before(next) {
		at = next
	}
	if wait := at.Sub(now); wait > 0 && !a.unshown.soon {
		a.due = time.After(wait)
		return
	}
	a.startPublication(false)
}

// startPublication starts the job that publishes the last commit, if there is something
// to do. It is called only when no publication runs.
func (a *Actor) startPublication(force bool) {
	a.unshown, a.shownAt = commits{}, time.Now()
	var job func() error
	err := a.guard(func() error {
		job = a.commit.Publication(force)
		return nil
	})
	if job == nil && err == nil {
		return
	}
	done := make(chan error, 1)
	a.published = done
	if err != nil {
		done <- err
		return
	}
	go func() { done <- a.guard(job) }()
}

// awaitPublication waits for the running publication, if there is one.
func (a *Actor) awaitPublication() error {
	if a.published == nil {
		return nil
	}
	return a.publishedWith(<-a.published)
}

func (a *Actor) publishedWith(err error) error {
	a.published = nil
	a.commit.Published(err)
	if err != nil {
		return a.pause(err, a.allDurable())
	}
	return nil
}
