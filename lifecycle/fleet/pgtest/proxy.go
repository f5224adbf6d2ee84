package pgtest

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// A Proxy is between a client and a server, and breaks what it is told to. Make one with
// [NewProxy]. Its faults hold until [Proxy.Heal].
type Proxy struct {
	t    testing.TB
	addr string
	work sync.WaitGroup // all goroutines

	mu       sync.Mutex // of what follows
	listener net.Listener
	dropping bool
	hanging  bool
	target   string
	delay    time.Duration
	budget   int64  // bytes from clients until the cut; -1: no cut
	reply    []byte // what a client says before a reply is cut; nil: no cut
	links    map[*link]struct{}
	up, down int64 // bytes forwarded from and to clients
}

// NewProxy makes a proxy to an address, "127.0.0.1:5432" say. It is closed when the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, target: target, budget: -1, links: map[*link]struct{}{}}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	p.addr = fmt.Sprintf("127.0.0.1:%d", port)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listen()
	t.Cleanup(func() {
		p.Drop()
		_ = p.listener.Close()
		p.work.Wait()
	})
	return p
}

// listen is called with mu.
func (p *Proxy) listen() {
	p.t.Helper()
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.listener = l
	p.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			p.accept(c.(*net.TCPConn))
		}
	})
}

// accept serves a client, at the server that is the target now.
func (p *Proxy) accept(client *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &link{p: p, client: client, done: make(chan struct{})}
	if p.dropping {
		l.reset()
		return
	}
	p.links[l] = struct{}{}
	target, hanging := p.target, p.hanging
	p.work.Go(func() { l.run(target, hanging) })
}

// Addr is the address at which the proxy listens.
func (p *Proxy) Addr() string { return p.addr }

// URL is the URL of a database, through the proxy.
func (p *Proxy) URL(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		p.t.Fatal(err)
	}
	u.Host = p.addr
	return u.String()
}

// Retarget sends new connections to another server. Open ones stay.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Delay holds all bytes back for a time, each way.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Drop closes all connections and resets new ones. The proxy keeps its port, which another process would take.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropping = true
	for l := range p.links {
		l.close()
	}
}

// Hang swallows all bytes and closes nothing, as when a cable is pulled: a client that closes its
// connection is still there for the server. New connections are taken and swallowed as well.
func (p *Proxy) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hanging = true
}

// CutAfter forwards n more bytes from clients. Then it resets the connection of the last of them,
// at both ends; other connections are served as before.
func (p *Proxy) CutAfter(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget = n
}

// CutReply forwards what a client sends next, and resets the connection when the server replies:
// the server has done what the client asks for, and the client does not know. If text is not "",
// it waits for what has text in it, "commit" say; a statement that is prepared has its text only when it is
// prepared.
func (p *Proxy) CutReply(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reply = append([]byte{}, text...)
	for l := range p.links {
		l.before = nil // said before
	}
}

// Heal ends all faults. It resets connections of which bytes were swallowed, or that one end has
// closed meanwhile; others go on.
func (p *Proxy) Heal() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hanging, p.delay, p.budget, p.reply = false, 0, -1, nil
	for l := range p.links {
		if l.lost {
			l.reset()
		}
	}
	p.dropping = false
}

// Bytes is how many bytes were forwarded from clients to the server, and from it to them.
func (p *Proxy) Bytes() (up, down int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.up, p.down
}

// judge says how many of n bytes of a link are forwarded, and whether it is cut then.
// It is called with mu.
func (p *Proxy) judge(l *link, upwards bool, data []byte) (n int, cut bool) {
	n = len(data)
	switch {
	case p.hanging:
		l.lost = true
		return 0, false
	case !upwards && l.cutReply:
		return 0, true
	case !upwards:
		p.down += int64(n)
		return n, false
	}
	if p.reply != nil && bytes.Contains(append(l.before, data...), p.reply) {
		p.reply, l.cutReply = nil, true
	}
	l.before = data[max(0, n-maxText):]
	if p.budget >= 0 {
		n, cut = int(min(p.budget, int64(n))), p.budget <= int64(n)
		p.budget -= int64(n)
		if cut {
			p.budget = -1
		}
	}
	p.up += int64(n)
	return n, cut
}
