package pgtest

import (
	"net"
	"sync"
	"time"
)

// maxText is how much of what a client sent is kept, to find a text in two reads of it.
const maxText = 64

// A link is one connection of a client and the one to the server that belongs to it.
type link struct {
	p      *Proxy
	client *net.TCPConn
	done   chan struct{} // closed with the connections

	mu     sync.Mutex   // of what follows
	server *net.TCPConn // nil before it is connected, and of a link that began while the proxy hung
	ended  bool

	// Guarded by p.mu.
	lost     bool   // bytes were swallowed, or an end has closed while the proxy hung
	cutReply bool   // what the server sends next cuts the link
	before   []byte // the last bytes from the client
}

// A piece is what one read gave.
type piece struct {
	data []byte
	due  time.Time
	end  bool // nothing follows: that end has closed
}

// run serves the link until both ends are closed.
func (l *link) run(target string, hanging bool) {
	p := l.p
	defer func() {
		l.close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	}()
	if hanging {
		p.mu.Lock()
		l.lost = true
		p.mu.Unlock()
		l.carry(l.client, nil, true)
		return
	}
	c, err := net.DialTimeout("tcp", target, patience)
	if err != nil {
		l.reset()
		return
	}
	server := c.(*net.TCPConn)
	if !l.join(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.carry(l.client, server, true) })
	both.Go(func() { l.carry(server, l.client, false) })
	both.Wait()
}

// carry takes one direction's bytes from one end to the other until an end closes. It reads on
// while bytes are held back, so that a delay does not bound what goes through in a second.
func (l *link) carry(from, to *net.TCPConn, upwards bool) {
	pieces := make(chan piece, 1024)
	var reader sync.WaitGroup
	reader.Go(func() { l.read(from, pieces) })
	defer reader.Wait()
	for {
		select {
		case <-l.done:
			return
		case one := <-pieces:
			if !l.hold(one.due) || !l.forward(one, to, upwards) {
				return
			}
			if one.end {
				<-l.done // the proxy hangs: Heal or Drop ends the link
				return
			}
		}
	}
}

func (l *link) read(from *net.TCPConn, pieces chan<- piece) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		l.p.mu.Lock()
		due := time.Now().Add(l.p.delay)
		l.p.mu.Unlock()
		one := piece{data: append([]byte{}, buf[:n]...), due: due, end: err != nil}
		select {
		case pieces <- one:
		case <-l.done:
			return
		}
		if err != nil {
			return
		}
	}
}

// hold waits until a time, and says whether the link still is there.
func (l *link) hold(until time.Time) bool {
	wait := time.NewTimer(time.Until(until))
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-l.done:
		return false
	}
}

// forward writes a piece to the other end, as far as the proxy's faults let it, and says whether
// the link still is there.
func (l *link) forward(one piece, to *net.TCPConn, upwards bool) bool {
	l.p.mu.Lock()
	n, cut := 0, false
	if len(one.data) > 0 {
		n, cut = l.p.judge(l, upwards, one.data)
	}
	hanging := l.p.hanging
	l.lost = l.lost || hanging && one.end
	l.p.mu.Unlock()
	if n > 0 && to != nil {
		if _, err := to.Write(one.data[:n]); err != nil {
			l.close()
			return false
		}
	}
	switch {
	case cut:
		l.reset()
		return false
	case one.end && !hanging:
		l.close()
		return false
	}
	return true
}

// join gives the link its connection to the server, and says whether it still is there.
func (l *link) join(server *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = server.Close()
		return false
	}
	l.server = server
	return true
}

// close closes both connections.
func (l *link) close() { l.end(false) }

// reset closes both connections so that the client and the server get a reset.
func (l *link) reset() { l.end(true) }

func (l *link) end(reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.done)
	for _, c := range []*net.TCPConn{l.client, l.server} {
		if c == nil {
			continue
		}
		if reset {
			_ = c.SetLinger(0)
		}
		_ = c.Close()
	}
}
