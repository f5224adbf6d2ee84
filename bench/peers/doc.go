// Command peers measures this project beside what else a loop could keep its state
// with, on the same work, disk and run. It runs the benchmarks of this folder and of the
// one above, and writes what they say as tables:
//
//	go run . -out .. -readme ../../README.md
//	                            # half an hour of a quiet machine: RESULTS.md, results.json
//	go run . -out .. -quick     # some minutes, for a first look
//	go run . -out .. -from ../results.json -readme ../../README.md
//	                            # measures nothing, writes what a run measured
//
// rows.go lists everything that is measured, and every bound. A benchmark reports a figure
// of each of its sides; in this folder these are the contenders, each a Peer: Save hands a
// step of a loop over and returns when the caller may go on, Sync when that is as durable
// as the peer ever makes it. What each promises stands in kinds.go and in every row of it.
//
// # Method
//
// The work comes from bench/workload, from one seed. The sides of a benchmark have their
// turns in one process (bench/turns), so that what the machine does besides falls on all
// alike. Each round is a process; a figure is the median of the rounds' medians, a ratio
// the median of the rounds' ratios. A round begins when there seems to be time for it.
//
// What a commit costs in fsyncs and bytes, and what a slow or a stalled disk does to
// the caller, is measured on a file system in user space (bench/fusedisk) that passes
// everything on, counts, and holds fsync back. Where it cannot be mounted (other than on
// Linux) those rows are not there. renameio has no rows on Windows.
//
// A row that was not measured says so. What people notice (the command on a usual project,
// and git) also goes into a readme, between two marks.
//
// # Caveats
//
// The whole of this is one machine's answer. Ratios travel further than figures.
package main
