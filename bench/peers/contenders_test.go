package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/fusedisk"
	"github.com/lopen-dev/lopen/bench/workload"
)

// A Peer keeps the state of one loop in a folder. Its calls come from one goroutine.
type Peer interface {
	// Save hands over what a step changed, and returns when the loop may go on.
	Save(workload.Step) error
	// Sync returns when everything saved is as durable as it ever gets.
	Sync() error
	Close() error
}

// An Appender also keeps the messages of a conversation.
type Appender interface {
	Peer
	// Append hands over a message. Sync makes it as durable as it ever gets.
	Append(text string) error
}

// atOnce is part of those whose Save is all that they do.
type atOnce struct{}

func (atOnce) Sync() error  { return nil }
func (atOnce) Close() error { return nil }

// peers open a contender with a plan of n tasks in an empty folder.
var peers = map[string]func(dir string, n int) (Peer, error){
	"lopen": openLopen, "append": openFloor, "tidwall": openLog(tidwallLog), "raft-wal": openLog(raftLog), "bbolt": openBolt,
	"sqlite-full": openSQLite("FULL"), "sqlite-normal": openSQLite("NORMAL"), "renameio": openRenameio, "natefinch": openNatefinch,
	"rename": openRename, "channel": openChannel, "copy": openCopy,
}

// A contender is a Peer that is open.
type contender struct {
	kind
	Peer
	tb     testing.TB
	steps  int // so far
	tasks  int
	closed bool
}

var opened int

// open starts a contender in a folder of its own below dir.
func open(tb testing.TB, k kind, dir string, n int) *contender {
	tb.Helper()
	opened++
	dir = filepath.Join(dir, fmt.Sprintf("peer-%d", opened))
	require.NoError(tb, os.Mkdir(dir, 0o700))
	p, err := peers[k.key](dir, n)
	require.NoError(tb, err)
	c := &contender{kind: k, Peer: p, tb: tb, tasks: n}
	tb.Cleanup(c.end)
	return c
}

// openAll starts those that are for this system: renameio says that nothing on Windows is
// what it promises.
func openAll(tb testing.TB, dir string, n int) (all []*contender) {
	tb.Helper()
	for _, k := range contenders {
		if filepath.Separator == '/' || k.key != "renameio" {
			all = append(all, open(tb, k, dir, n))
		}
	}
	return all
}

func (c *contender) next() workload.Step {
	c.steps++
	return workload.StepOf(c.steps-1, c.tasks)
}

func (c *contender) save() { require.NoError(c.tb, c.Save(c.next())) }
func (c *contender) sync() { require.NoError(c.tb, c.Sync()) }

// durable is one save, waited for.
func (c *contender) durable() { c.save(); c.sync() }

// end closes a contender, once.
func (c *contender) end() {
	if !c.closed {
		c.closed = true
		require.NoError(c.tb, c.Close())
	}
}

// TestMain lets the test's program be the disk, too.
func TestMain(m *testing.M) {
	if ran, err := fusedisk.Serve(); ran {
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// mount is a disk that counts and holds fsyncs back.
func mount(tb testing.TB) *fusedisk.Disk {
	tb.Helper()
	d, err := fusedisk.Mount(tb.TempDir())
	if err != nil {
		tb.Skipf("no FUSE here: %v", err)
	}
	tb.Cleanup(func() { require.NoError(tb, d.Close()) })
	return d
}
