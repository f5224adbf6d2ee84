package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/fleet"
)

// Costs are what the page has on paper is computed from.
type costs struct {
	sessions       int
	task, renewal  time.Duration // CPU time of the server, for a task and for the renewal of one lease
	records, bytes float64       // of a task
	wal, disk      float64       // bytes for a task
	walRenewal     float64
	record         time.Duration // CPU time of the server for a record of a backlog
	perSecond      float64       // records of a backlog
	connections    int64
	objects        float64 // bytes a second of a large content
}

// load measures 1,000 sessions of three processes, and the same work with rows.
func (b *bench) load() error {
	fl, err := b.group(false)
	if err != nil {
		return err
	}
	arrive := func() error { _, err := fl.do(command{Do: "arrive"}); return err }
	if err := arrive(); err != nil {
		return err
	}
	b.costs.sessions = b.size.sessions / runners * runners
	fmt.Fprintf(&b.page, loadText, b.costs.sessions, runners, tasks, question>>10, answer>>10)
	idle, err := fl.during(func() error { time.Sleep(b.size.idle); return nil })
	if err != nil {
		return err
	}
	b.idleTable(&idle)
	fl.proxy.Drop()
	if _, err := fl.do(command{Do: "tasks", N: b.size.backlog}); err != nil {
		return err
	}
	fl.proxy.Heal()
	back, err := fl.during(arrive)
	if err != nil {
		return err
	}
	b.backlogTable(&back)
	rs, err := b.group(true)
	if err != nil {
		return err
	}
	fmt.Fprint(&b.page, steadyText)
	for _, pace := range b.size.paces {
		for _, g := range []*group{fl, rs} {
			if err := b.steady(g, pace, &idle); err != nil {
				return err
			}
		}
	}
	for _, g := range []*group{fl, rs} {
		for _, p := range g.all {
			p.end()
		}
	}
	return nil
}

// steady has a group work at a pace.
func (b *bench) steady(g *group, pace time.Duration, idle *reading) error {
	if _, err := g.do(command{Do: "memory"}); err != nil { // what it has noted so far does not count
		return err
	}
	var a reply
	d, err := g.during(func() (err error) {
		if a, err = g.do(command{Do: "work", For: b.size.steady, Pace: pace}); err != nil {
			return err
		}
		rest, err := g.do(command{Do: "arrive"})
		a.Lags = append(a.Lags, rest.Lags...)
		slices.Sort(a.Lags)
		return err
	})
	if err != nil {
		return err
	}
	b.steadyRow(g, pace, &d, idle, a.Lags)
	return nil
}

// idleTable says what sessions cost that do nothing.
func (b *bench) idleTable(d *reading) {
	renewals := float64(b.costs.sessions) * d.took.Seconds() / fleet.Renew.Seconds()
	b.costs.renewal, b.costs.walRenewal = time.Duration(float64(d.cpu)/renewals), float64(d.wal)/renewals
	fmt.Fprintf(&b.page, "| %d sessions do nothing | |\n|---|---|\n", b.costs.sessions)
	fmt.Fprintf(&b.page, "| CPU time of the server | %.2f %% of a core |\n| of a renewal | %v |\n| WAL of a renewal | %.0f bytes |\n| connections | %d |\n\n",
		100*d.cpu.Seconds()/d.took.Seconds(), short(b.costs.renewal), b.costs.walRenewal, d.connections)
}

// backlogTable says how fast a backlog is shipped.
func (b *bench) backlogTable(d *reading) {
	n := float64(d.records)
	b.costs.record, b.costs.perSecond, b.costs.connections = time.Duration(float64(d.cpu)/n), n/d.took.Seconds(), d.connections
	fmt.Fprintf(&b.page, "| a backlog of %d records, %.0f MB, once the database is back | |\n|---|---|\n", d.records, float64(d.bytes)/1e6)
	fmt.Fprintf(&b.page, "| until all of it is there | %v |\n| records a second | %.0f |\n| MB a second | %.1f |\n| connections | %d |\n| CPU time of the server, a record | %v |\n| bytes to the server, a byte of records | %.2f |\n| WAL, a byte of records | %.2f |\n\n",
		short(d.took), b.costs.perSecond, float64(d.bytes)/1e6/d.took.Seconds(), d.connections, short(b.costs.record), float64(d.up)/float64(d.bytes), float64(d.wal)/float64(d.bytes))
}

// steadyRow says what sessions cost that work.
func (b *bench) steadyRow(g *group, pace time.Duration, d, idle *reading, lags []time.Duration) {
	name, n, took := "a fleet", float64(len(lags))/2, d.took.Seconds()
	c := &b.costs
	if g.row {
		name, d.bytes = "an UPDATE", int64(c.bytes*n) // the same records say what has changed
	} else {
		c.task = time.Duration((float64(d.cpu) - float64(idle.cpu)*took/idle.took.Seconds()) / n)
		c.records = float64(d.records) / n
		c.bytes, c.wal, c.disk = float64(d.bytes)/n, float64(d.wal)/n, float64(d.disk)/n
	}
	records := "" // a row has none
	if !g.row {
		records = fmt.Sprintf("%.0f", float64(d.records)/took)
	}
	fmt.Fprintf(&b.page, "| %v | %s | %.0f | %s | %s | %s | %d | %v | %.2f | %.2f |\n", pace, name, n/took, records, ms(at(lags, 0.5)), ms(at(lags, 0.99)),
		d.connections, short(time.Duration(float64(d.cpu)/n)), float64(d.up)/float64(d.bytes), float64(d.wal)/float64(d.bytes))
}
