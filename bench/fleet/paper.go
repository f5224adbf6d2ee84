package main

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/fleet"
)

// On paper there are this many sessions, and each has a task in this time.
const (
	many     = 100_000
	taskTime = 5 * time.Minute
)

// paper says what many sessions would take, from what was measured of 1,000.
func (b *bench) paper() {
	c := &b.costs
	tasksSecond, renewals := many/taskTime.Seconds(), many/fleet.Renew.Seconds()
	work, lease := tasksSecond*c.task.Seconds(), renewals*c.renewal.Seconds()
	const day = 24 * 3600
	fmt.Fprintf(&b.page, paperText, many, taskTime,
		tasksSecond, tasksSecond*c.records, c.perSecond,
		work, renewals, lease,
		(tasksSecond*c.wal+renewals*c.walRenewal)/1e6, tasksSecond*c.wal/1e6, renewals*c.walRenewal/1e6,
		tasksSecond*c.disk*day/1e9, tasksSecond*c.records*day/1e6,
		runners*many/c.sessions, int64(many/c.sessions)*c.connections)
	fmt.Fprintf(&b.page, firstText, tasksSecond*c.disk*day*30/1e12, tasksSecond*c.records*day*30/1e9, 1/(c.task.Seconds()*2/3), c.objects/1e6)
}

const paperText = `
## On paper: %d sessions

With these figures, and a task of each session every %v. Nothing of this was run.

| what | |
|---|---|
| tasks a second | %.0f |
| records a second | %.0f, and a backlog was shipped at %.0f |
| CPU time of the server a second, for tasks | %.2f s |
| renewals of leases a second | %.0f |
| CPU time of the server a second, for these | %.2f s |
| WAL a second | %.1f MB: %.1f for tasks, %.1f for leases |
| growth of the database a day | %.0f GB, %.0f million records |
| processes like these, and their connections | %d, with %d |
`

const firstText = `
What gives first, in this order:

- **The table of records.** In 30 days it has %.1f TB and %.1f billion rows, and a retention that deletes rows leaves
  the rest to vacuum. Partitions by the hash of the session keep indexes and vacuum small: each statement names the
  session. Partitions by time would make forgetting cheap, but a session's records have no bound in time.
- **Connections.** A process has up to four, and where each session is a process of its own there are as many
  processes as sessions. A pooler in transaction mode takes them: nothing depends on the state of a connection.
- **CPU time.** A core that is used at two thirds takes a task's batch %.0f times a second. Each batch is a
  transaction of some ten statements, each of which is parsed and planned again.
- **Leases** cost little beside that. They are paid for sessions that do nothing as well.
- **Objects** are shipped at %.0f MB a second here. They are written as WAL, too, and go to each standby and each
  backup. Their names are hashes and they never change: a store that speaks S3 can have them, and the database only
  the names.
`
