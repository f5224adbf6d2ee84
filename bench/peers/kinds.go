package main

// A kind is one contender, or one side of a benchmark.
type kind struct {
	key, name string
	durable   string // what it promises when the benchmark's figure was taken
	saved     string // the same of Save alone, "" where that is no other
	module    string // whose version counts, "" for what is written here
}

const (
	durable    = "durable"
	reads      = "reads only"
	logOnly    = "durable; a log only, no state"
	visible    = "**not durable**: survives a crash of the process"
	whenSynced = "durable, name not synced: a power cut may bring the file before it back"
)

// contenders are those whose saves and messages are compared, this project first.
var contenders = []kind{
	{"lopen", "lopen", durable, "accepted; **durable only a commit later**, when Sync says so", ""},
	{"append", "write + fdatasync", "durable; bytes appended, nothing else", "", ""},
	{"tidwall", "tidwall/wal", logOnly, "", "github.com/tidwall/wal"},
	{"raft-wal", "raft-wal", logOnly, "", "github.com/hashicorp/raft-wal"},
	{"bbolt", "bbolt", durable, "", "go.etcd.io/bbolt"},
	{"sqlite-full", "SQLite FULL", durable, "", "modernc.org/sqlite"},
	{"sqlite-normal", "SQLite NORMAL", "**not durable**: a power cut takes the last commits", "", "modernc.org/sqlite"},
	{"renameio", "renameio", whenSynced, "", "github.com/google/renameio/v2"},
	{"natefinch", "natefinch/atomic", whenSynced, "", "github.com/natefinch/atomic"},
	{"rename", "model: rename", visible, "", ""},
	{"channel", "model: channel of 256", visible, "queued; **not durable**", ""},
	{"copy", "model: copy of the live file", "**not durable**: a crash may leave half a file", "", ""},
}

// chosen are the contenders that the table of what people notice names.
var chosen = []string{"lopen", "sqlite-full", "bbolt", "renameio", "rename"}
