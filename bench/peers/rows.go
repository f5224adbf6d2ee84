package main

import "slices"

// A row is a piece of work: what a benchmark of this folder or of the one above says of
// its sides, which work in turns.
type row struct {
	title, note string
	bench       string
	stat        string // that the benchmark reports of each side; "" is p50-ns
	sides       []kind // this project first; nil is all contenders
	saved       bool   // what is measured is Save alone
	people      string // the title among what people notice, "" for none of that
	// limit is the most that this project may take: of what the next side takes, or, where
	// there is a limit99 or no other side, in the unit of the stat. 0 is none.
	limit, limit99 float64
}

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

// recorders are how many of them keep records. The others write one file whole.
const recorders = 7

// chosen are the contenders that the table of what people notice names.
var chosen = []string{"lopen", "sqlite-full", "bbolt", "renameio", "rename"}

var (
	lopen      = kind{key: "lopen", name: "lopen"}
	appendSync = kind{key: "append", name: "append and fdatasync of as many bytes"}
	send       = kind{key: "send", name: "a send to a goroutine"}
	statEach   = kind{key: "stat", name: "a stat of each, one after the other"}
	jsonAlone  = kind{key: "json", name: "encoding/json alone"}
	copied     = kind{key: "copy", name: "a copy of the bytes"}
	gitStatus  = kind{key: "git", name: "`git status`", durable: reads}
	gitAdd     = kind{key: "git", name: "`git add -A && git write-tree`, core.fsync=all", durable: durable}
	start      = kind{key: "start", name: "lopen version: the start of a process"}
	ours       = kind{key: "lopen", name: "lopen", durable: durable}
	look       = kind{key: "lopen", name: "lopen", durable: reads}
	alone      = []kind{{name: "lopen"}} // the benchmark reports the stat and no side
)

// bounds are what this project set itself, in the folder above. Those without a limit are
// there to be known. The last side is what nothing on this machine could be faster than,
// wherever there is such a thing.
var bounds = []row{
	{title: "Save back to back, disk idle, 10 tasks", bench: "Save/idle", sides: []kind{{key: "tasks=10", name: "lopen"}, send}, limit: 100, limit99: 500},
	{title: "Save back to back, disk idle, 1,000,000 tasks", bench: "Save/idle", sides: []kind{{key: "tasks=1000000", name: "lopen"}, send}, limit: 100, limit99: 500},
	{title: "Save back to back, a commit takes 50 ms, 10 tasks", bench: "Save/slow", sides: []kind{{key: "tasks=10", name: "lopen"}}, limit: 100, limit99: 500},
	{title: "Save back to back, a commit takes 50 ms, 1,000,000 tasks", bench: "Save/slow", sides: []kind{{key: "tasks=1000000", name: "lopen"}}, limit: 100, limit99: 500},
	{title: "Save back to back, a commit hangs, 10 tasks", bench: "Save/stalled", sides: []kind{{key: "tasks=10", name: "lopen"}}, limit: 100, limit99: 500},
	{title: "Save back to back, a commit hangs, 1,000,000 tasks", bench: "Save/stalled", sides: []kind{{key: "tasks=1000000", name: "lopen"}}, limit: 100, limit99: 500},
	{title: "Allocations of a Save", bench: "Save/allocs", stat: "allocs/op", sides: alone, limit: 1},
	{title: "Save at 200 a second (writer asleep)", bench: "Paced", sides: []kind{lopen, {key: "send", name: "bare send to a goroutine that sleeps"}}, limit: 1.5},
	{title: "More commits for 10,000 triggers while one is held back", bench: "Held", stat: "more-commits", sides: alone, limit: 1},
	{title: "Burst of 10,000 triggers, last one until durable", bench: "Burst", sides: []kind{lopen, appendSync}, limit: 2.5},
	{title: "Save and Sync, 1,000,000 tasks", bench: "Durable", sides: []kind{{key: "tasks=1000000", name: "lopen"}, {key: "tasks=10", name: "the same with 10 tasks"}, appendSync}, limit: 2},
	{title: "Save and Sync by itself, plan of 40 tasks", bench: "Steady/alone", sides: []kind{lopen, appendSync}, limit: 1.2},
	{title: "The same once a second", bench: "Steady/rate=1", sides: []kind{lopen, appendSync}, limit: 1.2},
	{title: "The same 20 times a second", bench: "Steady/rate=20", sides: []kind{lopen, appendSync}, limit: 1.2},
	{title: "The same 200 times a second", bench: "Steady/rate=200", sides: []kind{lopen, appendSync}, limit: 1.2},
	{title: "Fsyncs of a Save and Sync, once a second", bench: "Fsyncs/rate=1", stat: "fsyncs/save", sides: alone},
	{title: "Fsyncs of a Save and Sync, 20 times a second", bench: "Fsyncs/rate=20", stat: "fsyncs/save", sides: alone},
	{title: "Fsyncs of a Save and Sync, 200 times a second", bench: "Fsyncs/rate=200", stat: "fsyncs/save", sides: alone, limit: 1.05},
	{title: "Longest Save beside a commit of 1,000,000 tasks, ms", bench: "LargeCommit", stat: "longest-ms", sides: alone, limit: 1},
	{title: "Message of 200 bytes until durable", bench: "Message/bytes=200", sides: []kind{lopen, appendSync}, limit: 1.3},
	{title: "Message of 4 KiB until durable", bench: "Message/bytes=4096", sides: []kind{lopen, appendSync}, limit: 1.3},
	{title: "Message of 64 KiB until durable", bench: "Message/bytes=65536", sides: []kind{lopen, appendSync}, limit: 1.3},
	{title: "1,000 messages of 200 bytes as fast as they come, until the last one is durable", bench: "Messages/bytes=200", sides: []kind{lopen, appendSync}, limit: 1.5},
	{title: "The same from the last one on", bench: "Messages/bytes=200", sides: []kind{{key: "last", name: "lopen"}, appendSync}},
	{title: "1,000 messages of 4 KiB as fast as they come, until the last one is durable", bench: "Messages/bytes=4096", sides: []kind{lopen, appendSync}, limit: 1.5},
	{title: "The same from the last one on", bench: "Messages/bytes=4096", sides: []kind{{key: "last", name: "lopen"}, appendSync}},
	{title: "Resume, 1,000 tasks", bench: "Resume/tasks=1000", sides: []kind{lopen, jsonAlone, copied}, limit: 0.5},
	{title: "Resume, 100,000 tasks", bench: "Resume/tasks=100000", sides: []kind{lopen, jsonAlone, copied}, limit: 0.35},
	{title: "List of 10,000 sessions", bench: "List", sides: []kind{lopen, {key: "read", name: "serial open, read of 1 KiB and close of each"}}, limit: 1},
	{title: "10,000 files, nothing changed", bench: "FilesUnchanged", sides: []kind{lopen, gitStatus, statEach}, limit: 0.8},
	{title: "The same, the snapshot before decoded as well", bench: "FilesUnchanged", sides: []kind{{key: "load", name: "lopen"}, gitStatus, statEach}},
	{title: "Second run, 2 GB in 20,000 files unchanged", bench: "SecondRun", sides: []kind{lopen, gitStatus}, limit: 1.5},
	{title: "The same, a checkpoint made, durable", bench: "SecondRun", sides: []kind{{key: "checkpoint", name: "lopen"}, gitStatus}},
	{title: "Checkpoint of 10,000 files, 10 changed, durable", bench: "Checkpoint", sides: []kind{lopen, gitAdd, {key: "floor", name: "a stat of each, one append and fdatasync"}}, limit: 0.5},
	{title: "Checkpoint of 10,000 files, nothing changed, durable", bench: "CheckpointUnchanged", sides: []kind{lopen, {key: "look", name: "the change detection alone"}}, limit: 1.15},
	{title: "First checkpoint of 50,000 files, durable", bench: "CheckpointFirst", sides: []kind{lopen, gitAdd}, limit: 0.15},
	{title: "Difference of two checkpoints of 100,000 files, opened, 10 differ", bench: "CheckpointDiff", sides: []kind{lopen}, limit: 10e6},
	{title: "Most that a checkpoint of 10 changed files takes beside them, KiB", bench: "CheckpointBytes", stat: "KiB-most", sides: alone, limit: 64},
	{title: "200 checkpoints of 10,000 files beside the contents, MiB", bench: "CheckpointBytes", stat: "MiB-all", sides: alone, limit: 20},
	{title: "Memory for checkpoints of 100,000 files, MiB", bench: "CheckpointMemory", stat: "MiB", sides: alone, limit: 200},
	{title: "SHA-256 of 10,000 files", bench: "Hash", sides: []kind{lopen, {key: "sha256sum", name: "`find -exec sha256sum`"}, {key: "memory", name: "the bytes hashed in memory, one core"}}},
	{title: "Section of a file in memory", bench: "Section", sides: []kind{{key: "hit", name: "lopen"}, {key: "stat", name: "one bare stat"}}, limit: 1.5},
	{title: "Section of a file not seen before", bench: "Section", sides: []kind{{key: "miss", name: "lopen"}, {key: "goldmark", name: "the goldmark parser alone on its bytes"}}},
	{title: "Heap of 1,000 live idle sessions, MiB", bench: "Idle", stat: "heap-MiB", sides: alone, limit: 20},
	{title: "Descriptors of a live idle session", bench: "Idle", stat: "descriptors/session", sides: alone, limit: 3},
	{title: "1,000 sessions that save once a second: heap, MiB", bench: "Busy/disk", stat: "heap-MiB", sides: alone, limit: 40},
	{title: "The same: processor, percent of one", bench: "Busy/disk", stat: "cpu-%", sides: alone},
	{title: "The same: saves a second that it comes to", bench: "Busy/disk", stat: "saves/s", sides: alone},
	{title: "The same: fsyncs a second", bench: "Busy/fsyncs", stat: "fsyncs/s", sides: alone},
}

// carried are what sessions go out of a store by, and come back.
var carried = slices.Concat(
	each("Export", "Carry/bundle", 2, kind{key: "export", name: "lopen"}, tarred),
	each("Import", "Carry/bundle", 2, kind{key: "import", name: "lopen"}, tarred, kind{key: "untar", name: "zstd -d and tar"}),
	each("Histories of Claude Code", "Carry/histories", 2, kind{key: "taken", name: "lopen"}, kind{key: "jq", name: "`jq -c .`"}),
	each("2,000 small histories", "Carry/many", 2, kind{key: "taken", name: "lopen"}, kind{key: "jq", name: "`jq -c .`"}),
	each("First backup", "Carry/first", 0, backups...),
	each("Second backup", "Carry/second", 0, backups...),
	each("Restore", "Carry/restore", 0, backups...),
)

var (
	tarred  = kind{key: "tar", name: "tar and zstd -3 -T0"}
	backups = []kind{lopen, {key: "restic", name: "restic"}, {key: "borg", name: "borg"}, {key: "encrypted", name: "lopen, encrypted"}}
)

// each has a row for everything that is measured of some work; the limit is of the time.
func each(title, bench string, limit float64, sides ...kind) []row {
	return []row{
		{title: title, bench: bench, sides: sides, limit: limit},
		{title: title + ": CPU time", bench: bench, stat: "cpu-ns", sides: sides},
		{title: title + ": memory, MiB", bench: bench, stat: "MiB", sides: sides},
		{title: title + ": bytes written", bench: bench, stat: "bytes", sides: sides},
	}
}

const (
	aloneNote = "Until closed, what is written besides and at the end included."
	bytesNote = "Likewise. About 90 bytes change in the state."
	sizeNote  = "One task changes. The floor does not know the plan."
	wholeNote = "Those that write one file whole are left out: they would write the conversation again for each message."
)

// figures are what every contender does.
var figures = []row{
	{title: "What the caller of Save waits at 200 a second, disk idle", bench: "PeerWaits/idle", saved: true, people: "What a loop waits for one save, 200 a second",
		note: "Plan of 40 tasks. Each save comes 5 ms after the one before, or as soon as that let its caller go."},
	{title: "What the caller of Save waits at 200 a second, each fsync takes 50 ms longer", bench: "PeerWaits/slow", saved: true, people: "The same while each fsync takes 50 ms longer",
		note: "On the file system in user space, the same for all."},
	{title: "The longest that a caller of Save waits while fsync hangs for 30 s", bench: "PeerStall", stat: "longest-ns", saved: true, note: "One stall, of all at the same time. Each saves 200 times a second. (A quick run: 3 s.)"},
	{title: "Saves that were taken while fsync hung", bench: "PeerStall", stat: "saves", saved: true, note: "Of 200 a second. More is better."},
	{title: "A burst of 10,000 saves: from the last one until durable", bench: "PeerBurst", stat: "last-ns", note: "(A quick run: 1,000.)"},
	{title: "A burst of 10,000 saves: what one keeps its caller", bench: "PeerBurst", stat: "each-ns", saved: true, note: "The burst divided by its saves."},
	{title: "A burst of 10,000 saves: from the first one until durable", bench: "PeerBurst", stat: "all-ns"},
	{title: "Fsyncs of a save by itself, plan of 40 tasks", bench: "PeerCosts/alone", stat: "fsyncs", note: aloneNote},
	{title: "Bytes written of a save by itself, plan of 40 tasks", bench: "PeerCosts/alone", stat: "bytes", note: bytesNote},
	{title: "Fsyncs of a save by itself, plan of 1,000 tasks", bench: "PeerCosts/tasks=1000", stat: "fsyncs", note: aloneNote},
	{title: "Bytes written of a save by itself, plan of 1,000 tasks", bench: "PeerCosts/tasks=1000", stat: "bytes", note: bytesNote},
	{title: "Fsyncs of a save, one every 5 ms", bench: "PeerCosts/paced", stat: "fsyncs", note: aloneNote},
	{title: "Bytes written of a save, one every 5 ms", bench: "PeerCosts/paced", stat: "bytes", note: bytesNote},
	{title: "Fsyncs a save in a burst of 1,000", bench: "PeerCosts/burst", stat: "fsyncs", note: aloneNote},
	{title: "Bytes written a save in a burst of 1,000", bench: "PeerCosts/burst", stat: "bytes", note: bytesNote},
	{title: "One message of 200 bytes until durable", bench: "PeerMessage/bytes=200", note: wholeNote},
	{title: "One message of 4,096 bytes until durable", bench: "PeerMessage/bytes=4096", note: wholeNote},
	{title: "One message of 65,536 bytes until durable", bench: "PeerMessage/bytes=65536", note: wholeNote},
	{title: "16 sessions at once: time for each durable save", bench: "PeerTogether", note: "The time that all took together, divided by the saves of all."},
	{title: "A session of 1,000 iterations: one of the last 100 until durable", bench: "PeerIterations", stat: "last-ns", note: "Each save adds an iteration to the metrics. (A quick run: 200 iterations.)"},
	{title: "The same: how many times one of the first took that long", bench: "PeerIterations", stat: "times", note: "1 is flat."},
	{title: "One save until durable, plan of 10 tasks", bench: "PeerDurable/tasks=10", note: sizeNote},
	{title: "One save until durable, plan of 40 tasks", bench: "PeerDurable/tasks=40", note: sizeNote, people: "One save of a plan of 40 tasks until durable"},
	{title: "One save until durable, plan of 1,000 tasks", bench: "PeerDurable/tasks=1000", note: sizeNote},
	{title: "One save until durable, plan of 100,000 tasks", bench: "PeerDurable/tasks=100000", note: sizeNote},
	{title: "One save until durable, plan of 1,000,000 tasks", bench: "PeerDurable/tasks=1000000", note: sizeNote},
}

// people are what somebody who uses the command notices, and the tool that does the same.
var people = []row{
	{people: "Checkpoint of 5,000 files, 5 of them changed", bench: "People/checkpoint", sides: []kind{ours, gitAdd}},
	{people: "Which of 5,000 files changed (none did)", bench: "People/look", sides: []kind{look, gitStatus}},
	{people: "A message of 4 KiB until durable, 20 MiB of them there", bench: "People/message", sides: []kind{ours, {key: "bbolt", name: "bbolt", durable: durable}, {key: "sqlite-full", name: "SQLite FULL", durable: durable}, {key: "file", name: "model: one JSON file, rename", durable: visible}}},
	{people: "Resume of a session with 20 MiB of messages, which are read when asked for", bench: "People/resume", sides: []kind{look, {key: "file", name: "model: one JSON file", durable: reads}}},
	{people: "Fork of a session with 20 MiB of messages", bench: "People/fork", sides: []kind{ours, {key: "folder", name: "copy of its folder", durable: "**not durable**"}}},
	{people: "`lopen session list`, 300 sessions", bench: "People/list", sides: []kind{look, start}},
	{people: "`lopen session show`, 300 sessions", bench: "People/show", sides: []kind{look, start}},
	{people: "`lopen run` until the first task's command has begun, 5,000 files, 40 tasks", bench: "People/run", sides: []kind{ours, start}},
}
