package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/fusedisk"
	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/bench/workload"
)

// A Peer keeps the state of one loop in a folder. Its calls come from one goroutine.
type Peer interface {
	// Save hands over what a step changed, and returns when the loop may go on.
	Save(workload.Step) error
	// Append hands over a message of a conversation.
	Append(text string) error
	// Sync returns when everything handed over is as durable as it ever gets.
	Sync() error
	Close() error
}

// must is for what has to work for a benchmark to have any meaning.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// peers open a contender with a plan of n tasks in an empty folder.
var peers = map[string]func(dir string, n int) Peer{
	"lopen": openLopen, "append": openFloor, "tidwall": openTidwall, "raft-wal": openRaft, "bbolt": openBolt,
	"sqlite-full": openSQLite("FULL"), "sqlite-normal": openSQLite("NORMAL"), "renameio": openWhole(writeRenameio), "natefinch": openWhole(writeNatefinch),
	"rename": openWhole(writeRename), "channel": openChannel, "copy": openWhole(writeCopy),
}

// A contender is a Peer that is open, and closed once.
type contender struct {
	kind
	Peer
	tb           testing.TB
	dir          string
	steps, tasks int // steps so far
	end          func()
}

var opened int

// open starts contenders, each in a folder of its own below dir. renameio says that
// nothing on Windows is what it promises.
func open(tb testing.TB, dir string, n int, kinds ...kind) (all []*contender) {
	tb.Helper()
	for _, k := range kinds {
		if filepath.Separator != '/' && k.key == "renameio" {
			continue
		}
		opened++
		own := filepath.Join(dir, fmt.Sprintf("peer-%d", opened))
		require.NoError(tb, os.Mkdir(own, 0o700))
		p := peers[k.key](own, n)
		c := &contender{kind: k, Peer: p, tb: tb, dir: own, tasks: n, end: sync.OnceFunc(func() { require.NoError(tb, p.Close()) })}
		tb.Cleanup(c.end)
		all = append(all, c)
	}
	return all
}

// inTurns has contenders do something in turns.
func inTurns(b *testing.B, all []*contender, side func(*contender) turns.Side) {
	var sides []turns.Side
	for _, c := range all {
		s := side(c)
		s.Name = c.key
		sides = append(sides, s)
	}
	turns.Run(b, sides...)
}

func (c *contender) next() workload.Step {
	c.steps++
	return workload.StepOf(c.steps-1, c.tasks)
}

func (c *contender) save() { require.NoError(c.tb, c.Save(c.next())) }
func (c *contender) sync() { require.NoError(c.tb, c.Sync()) }

// durable is one save, waited for; say is one message.
func (c *contender) durable()        { c.save(); c.sync() }
func (c *contender) say(text string) { require.NoError(c.tb, c.Append(text)); c.sync() }

// TestMain lets the test's program be the disk, too.
func TestMain(m *testing.M) { fusedisk.Main(m.Run) }
