package main

// beginning is what the page begins with.
const beginning = `# A fleet, measured

` + "`go run ./bench/fleet -out bench/FLEET.md`" + ` writes this page; nobody edits it by hand.
It ran on 2 cores that the sessions, the servers and the proxies shared with other work.
PostgreSQL has fsync and full_page_writes on, 128 MB of shared buffers, and the disk of the sessions.
`

const sidesText = `
## What a session notices

A session with a fleet beside one without, in one process, each with a store of its own.
The slow database has its bytes held back for %v each way; the one that is half-open answers nothing and closes nothing.
In the loop a task is begun and synced, two messages are said, and it is completed and synced;
the %v of its agent do not count. %d rounds in turns: p50 is the median of the rounds', a ratio the median of their ratios.
"No fleet, again" is a second session without one: what its ratio differs from 1 is noise.

`

const loadText = `
## %d sessions of %d processes

Each session has a plan of %d tasks; a task is two changes, each synced, and messages of %d KiB and %d KiB.
A proxy between the processes and the server counts the bytes.

`

const steadyText = `Each session has a task now and then. Beside: the same work where each save is an UPDATE of one jsonb row that has
the whole state, and messages are rows that the same statement inserts; four connections a process as well.
Of a fleet the lag is from the return of Sync until the database has acknowledged it, which the session does not wait for;
of an UPDATE it is what each save takes, which the session does.
Bytes and WAL are to the server and of the server, for each byte of records that say what has changed.

| a task each | way | tasks a second | records a second | lag p50 | lag p99 | connections | server CPU a task | bytes | WAL |
|---|---|---|---|---|---|---|---|---|---|
`

const takeoverText = `
## A takeover

A session with %d tasks and %d MiB of messages continues in another folder. %d rounds, each in an empty store.

| step | median | slowest |
|---|---|---|
`

const memoryText = `
## Memory while the database is down

A process with %d sessions, each with a backlog. The heap is what lives after a collection.

| backlog of each session | heap, no fleet | heap, a fleet | more | RSS, no fleet | RSS, a fleet | goroutines, no fleet | goroutines, a fleet |
|---|---|---|---|---|---|---|---|
`
