// Package checkpoint keeps the files of a project at moments, and brings them
// back. It knows nothing of sessions, journals or terminals.
//
// A [Store] is the checkpoints of one session: their folder, the blobs that all
// sessions share, and the project's folder. [Store.Create] makes a checkpoint: the
// contents go into the blobs, everything else into a [Manifest], which never
// changes. [NewPlan] says what a rewind would do, and [Store.Apply] does it.
// [Diff], [Store.Patch] and [Store.Lines] show what differs; [Retire] says which
// checkpoints a limit does not keep, and [Roots] which blobs are still needed. [Share]
// gives them to a session that goes on from this one.
//
//	checkpoints/cp-000001/manifest.json   what the files were
//	checkpoints/cp-000001/pinned          empty; there while it is pinned
//	checkpoints/last                      the highest ID that was given and removed
//	checkpoints/inherited                 the highest ID that a fork began with
//
// # What a rewind keeps
//
// The loop's work is what stands as the loop's last checkpoint has it. A rewind
// changes that and nothing else: a file that somebody else changed, removed or put
// in the way is kept and reported, unless it is forced; one that the target did not
// know is removed only if the last checkpoint has it, just so. What the target does
// not cover, what is ignored and what could not be recorded is never touched, with
// force or without.
//
// # Concurrency
//
// All functions may be called from any goroutine. Create, Remove, Pin and Apply are
// for who holds the session; of those of one Store only one runs at a time. Any
// number of Stores of other sessions may be at work on the same blobs and the same
// project, and a sweep beside them: Create holds the blobs until its manifest is
// durable.
//
// # Crash safety
//
// A checkpoint appears whole, by the rename of its folder, after its blobs and its
// manifest are durable. One that is removed is renamed away durably first.
//
// Apply writes every new content beside its place, verified and synced, before it
// changes anything that can be seen: a full disk or a damaged blob leave the tree as
// it was. Then it renames, then it removes, then it syncs each folder. Each step
// looks at what stands first, so applying the same plan again after a crash does
// what is left. A plan is made of three snapshots and nothing else: who keeps these
// makes the same plan again. Temporary names begin with .lopen-rewind-, and the next
// Apply of the plan removes them. Only after a failed sync of a folder, which the
// error says, nothing that is done again proves more than the first time did: see
// package writer.
//
// # Caveats
//
// What a program writes into a file between the look and the rename that follows at
// once is lost to it, as it is with every tool that replaces files by name. Owners,
// extended attributes, times and hard links are not kept.
package checkpoint
