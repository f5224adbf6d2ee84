//go:build unix

package main

import (
	"bufio"
	"time"

	"golang.org/x/sys/unix"
)

// keyPoll is how often a wait looks whether somebody pressed a key.
const keyPoll = 100 * time.Millisecond

// Key looks for a line on the terminal that nobody asked for. It reads only what is there,
// and only in the foreground: no later question misses its answer, and a run in the
// background is not stopped for reading. stop returns when nothing is read any more.
func (s *screen) Key() (pressed <-chan struct{}, stop func()) {
	if !s.app.interactive() {
		return nil, func() {}
	}
	keys, quit, ended := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(keyPoll)
		defer tick.Stop()
		for {
			select {
			case <-quit:
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
			select {
			case keys <- struct{}{}:
			default:
			}
		}
	}()
	return keys, func() {
		close(quit)
		<-ended
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
