package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
)

// TestLogTellsOfEachOperation reads each operation that a record can have and says what
// `session log` prints of it, "" where another line has it.
func TestLogTellsOfEachOperation(t *testing.T) {
	t.Parallel()
	told := map[string]struct{ with, text string }{
		"task-created":        {`"task":{"id":"a"}`, "a task created"},
		"task-status-changed": {`"from":"pending","task":{"id":"a","state":"failed"}`, "a: pending → failed"},
		"task-modified":       {`"task":{"id":"a"}`, "a task modified"},
		"task-moved":          {`"task":{"id":"a"}`, "a task moved"},
		"task-removed":        {`"id":"a"`, "a task removed"},
		"dependency-added":    {`"task":{"id":"a"}`, "a dependency added"},
		"dependency-removed":  {`"task":{"id":"a"}`, "a dependency removed"},
		"children-changed":    {`"of":"a","at":0,"removed":1,"inserted":["b"]`, ""},
		"iterations-added":    {`"iterations":[{"number":1},{"number":2}]`, "the command ran 2 times"},
		"status-changed":      {`"from":"active","set":{"status":"paused"}`, "status: active → paused"},
		"phase-changed":       {`"from":"planning","set":{"phase":"building"}`, "phase: planning → building"},
		"step-changed":        {`"from":"repeat","unset":["step"]`, "step: repeat → none"},
		"component-changed":   {`"set":{"component":"a"}`, "component: none → a"},
		"active-task-changed": {`"from":"a","set":{"activeTask":"b"}`, "active task: a → b"},
		"exit-reason-changed": {`"set":{"exitReason":"paused"}`, "exit reason: none → paused"},
		"checked":             {`"set":{"check":{"exit":1}}`, "checked"},
		"resources-changed":   {`"unset":["resources"]`, "resources changed"},
		"modified":            {`"set":{"turnCount":2}`, ""},
		"messages-appended":   {`"count":1`, "1 message"},
		"events-appended":     {`"count":2`, "2 events of the transcript"},
		"attempt-recorded":    {`"id":"a","to":"done"`, ""},
		"checkpoint-made":     {`"id":"a","to":"c1"`, "checkpoint c1 of a"},
		"not-set-back":        {`"id":"a","to":"busy"`, "the files stay as a left them: busy"},
		"files-kept":          {`"id":"a","to":"open","count":3,"paths":["b","c\n"]`, `kept, open: b, "c\n" and 1 more`},
		"files-changed":       {`"id":"a","to":"created","count":4,"paths":["b","c\n"]`, `files created: b, "c\n" and 2 more`},
	}
	source, err := os.ReadFile("../../lifecycle/session/record/record.go")
	require.NoError(t, err)
	all := regexp.MustCompile(`(?m)^\tOp\w+ += "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, all)
	for _, m := range all {
		op, ok := told[m[1]]
		require.True(t, ok, "%s has no row here: summarize (lifecycle/wire) and opText make its line", m[1])
		rec, err := wire.DecodeRecord(fmt.Appendf(nil, `{"seq":1,"schemaVersion":%d,"ops":[{"op":%q,%s}]}`, wire.SchemaVersion, m[1], op.with))
		require.NoError(t, err)
		lines := changesText(rec, turnsOf{})
		if op.text == "" {
			require.Empty(t, lines, m[1])
		} else {
			require.Equal(t, []string{op.text}, lines, m[1])
		}
		delete(told, m[1])
	}
	require.Empty(t, told, "no operation of a record")
}

// TestLogTellsOfAWholeState says what is printed of a record that has the whole State in the
// place of its operations.
func TestLogTellsOfAWholeState(t *testing.T) {
	t.Parallel()
	counts := map[string]uint64{
		record.OpTaskCreated: 4000, record.OpDependencyAdded: 2, record.OpPhaseChanged: 1, record.OpIterationsAdded: 1, record.OpModified: 1, record.OpChildrenChanged: 3,
	}
	require.Equal(t, []string{
		"2 tasks: dependency added", "iterations added", "phase changed", "4000 tasks: task created", "the whole state is in history/2-7.json",
	}, changesText(record.Record{Epoch: 2, Seq: 7, Snapshot: &record.SnapshotRef{Counts: counts}}, turnsOf{}))
}

// TestLogCountsWhatWasSaid prints records of messages and events that follow each other as one
// line, and none of another kind within it.
func TestLogCountsWhatWasSaid(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 1, 2, 3, 0, time.Local)
	said := func(seq uint64, ops ...record.Op) record.Record {
		return record.Record{Seq: seq, At: at, Ops: ops}
	}
	message, event, modified := record.Op{Name: record.OpMessagesAppended, Count: 1}, record.Op{Name: record.OpEventsAppended, Count: 2}, record.Op{Name: record.OpModified}
	saved := said(9, message)
	saved.Triggers[session.TriggerTaskCompleted] = 1
	var b strings.Builder
	p := recordPrinter{w: &b}
	for _, r := range []record.Record{
		said(1, modified), said(2, message), said(3, event, message), said(4, modified), said(5, event), said(6, record.Op{Name: record.OpTaskCreated, Task: "a"}),
		said(7, event), said(8, record.Op{Name: record.OpTaskCreated, Task: "b"}), saved, said(10, message),
	} {
		require.NoError(t, p.add(r))
	}
	require.NoError(t, p.flush())
	require.NoError(t, p.flush())
	require.Equal(t, `2026-11-24
01:02:03  #1  modified
01:02:03  #2-5  2 messages, 4 events of the transcript
01:02:03  #6  task created
          a task created
01:02:03  #7  2 events of the transcript
01:02:03  #8  task created
          b task created
01:02:03  #9  task-completed
          1 message
01:02:03  #10  1 message
`, b.String())
}
