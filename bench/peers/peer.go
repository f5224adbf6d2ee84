package main

import "github.com/lopen-dev/lopen/bench/workload"

// A Peer keeps the state of one loop in a folder. Its calls come from one goroutine.
type Peer interface {
	// Save hands over what a step changed, and returns when the loop may go on.
	Save(workload.Step) error
	// Sync returns when everything saved is as durable as the Kind says.
	Sync() error
	Close() error
}

// An Appender also keeps the messages of a conversation.
type Appender interface {
	// Append hands over a message. Sync makes it as durable as the Kind says.
	Append(text string) error
}

// A Kind is one contender.
type Kind struct {
	Name    string
	Version string // of the module, "" for what is written here
	// Durable says what a nil from Sync promises, in a few words for a table, and
	// Saved what one from Save does, "" where that is the same.
	Durable, Saved string
	// Whole says that each save writes the state in full.
	Whole bool
	// Open starts with a plan of n tasks in an empty folder; nil where the system lacks it.
	Open func(dir string, n int) (Peer, error)
}

const (
	durable    = "durable"
	visible    = "**not durable**: survives a crash of the process"
	whenSynced = "durable, name not synced: a power cut may bring the file before it back"
)

// Ours is the name of what all others are compared with, Floor of what no durable
// save can be faster than.
const (
	Ours  = "lopen"
	Floor = "write + fdatasync"
)

// kinds are all contenders, this project first.
var kinds = []Kind{
	{Ours, "", durable, "accepted; **durable only a commit later**, when Sync says so", false, openLopen},
	{Floor, "", durable + "; bytes appended, nothing else", "", false, openFloor},
	{"tidwall/wal", "github.com/tidwall/wal", durable + "; a log only, no state", "", false, openTidwall},
	{"raft-wal", "github.com/hashicorp/raft-wal", durable + "; a log only, no state", "", false, openRaftWAL},
	{"bbolt", "go.etcd.io/bbolt", durable, "", false, openBolt},
	{"SQLite FULL", "modernc.org/sqlite", durable, "", false, openSQLite("FULL")},
	{"SQLite NORMAL", "modernc.org/sqlite", "**not durable**: a power cut takes the last commits", "", false, openSQLite("NORMAL")},
	{"renameio", "github.com/google/renameio/v2", whenSynced, "", true, openRenameio},
	{"natefinch/atomic", "github.com/natefinch/atomic", whenSynced, "", true, openNatefinch},
	{"model: rename", "", visible, "", true, openRename},
	{"model: channel of 256", "", visible, "queued; **not durable**", true, openChannel},
	{"model: copy of the live file", "", "**not durable**: a crash may leave half a file", "", true, openCopy},
}

func kindOf(name string) Kind {
	for _, k := range kinds {
		if k.Name == name {
			return k
		}
	}
	panic("there is no kind " + name) // a mistake in a suite
}
