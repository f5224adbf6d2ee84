//go:build unix

package main

import (
	"bufio"
	"time"

	"golang.org/x/sys/unix"
)

// keyPoll is how often a wait looks whether somebody pressed a key.
const keyPoll = 100 * time.Millisecond

// A keyReader reads keys while a run waits.
type keyReader struct{ quit, ended chan struct{} }

// Key looks for a line on the terminal that nobody asked for. It reads only what is there,
// and only in the foreground: no later question misses its answer, and a run in the
// background is not stopped for reading. A line ends the waits of all runs. Once the last stop
// has returned nothing is read any more.
func (p *pane) Key() (pressed <-chan struct{}, stop func()) {
	s := p.screen
	if !s.app.interactive() {
		return nil, func() {}
	}
	own := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[own] = struct{}{}; len(s.keys) == 1 {
		before := s.reads
		s.reads = &keyReader{make(chan struct{}), make(chan struct{})}
		go s.readKeys(s.reads, before)
	}
	return own, func() {
		s.mu.Lock()
		delete(s.keys, own)
		reads, last := s.reads, len(s.keys) == 0
		if last {
			close(reads.quit)
		}
		s.mu.Unlock()
		if last {
			<-reads.ended
		}
	}
}

// readKeys reads until it is to quit. before is the reader before it, which may not have ended.
func (s *screen) readKeys(r, before *keyReader) {
	defer close(r.ended)
	if before != nil {
		<-before.ended
	}
	tick := time.NewTicker(keyPoll)
	defer tick.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-tick.C:
		}
		there, gone := typed(int(s.app.stdin.Fd()))
		if gone {
			return
		}
		if !there {
			continue
		}
		if s.app.lines == nil {
			s.app.lines = bufio.NewReader(s.app.stdin)
		}
		if _, err := s.app.lines.ReadString('\n'); err != nil {
			return
		}
		s.pressed()
	}
}

// pressed ends the waits of all runs.
func (s *screen) pressed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.keys {
		select {
		case key <- struct{}{}:
		default:
		}
	}
}

// typed says whether a line can be read from a terminal that this process is in the
// foreground of, and whether the terminal is gone.
func typed(fd int) (there, gone bool) {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil {
		return false, true
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(poll, 0); err != nil || group != unix.Getpgrp() {
		return false, false
	}
	return poll[0].Revents&unix.POLLIN != 0, poll[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0
}
