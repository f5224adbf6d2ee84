package actors

// publishIdle shows the last commit to readers when nothing waits. Commits go on
// beside it, so that nobody who waits for one waits for the readers' files.
func (a *Actor) publishIdle() {
	if a.paused.Load() == nil && a.published == nil && len(a.mailbox) == 0 {
		a.startPublication(false)
	}
}

// startPublication is called when none goes on.
func (a *Actor) startPublication(force bool) {
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

// awaitPublication waits for the publication that goes on, if one does.
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
