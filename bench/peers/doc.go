// Command peers measures this project beside what else a loop could keep its state
// with, on the same work, disk and run:
//
//	go run . -out ..            # 25 minutes of a quiet machine: RESULTS.md, results.json, *.svg
//	go run . -out .. -quick     # two minutes, for a first look
//	go run . -out .. -from ../results.json -readme ../../README.md
//	                            # measures nothing, writes what a run measured
//
// A Peer takes the steps of a loop: Save hands one over and returns when the peer
// lets its caller go on, Sync when that is as durable as the peer ever makes it. What
// each promises stands in its Kind and beside every figure of it.
//
// # Method
//
// The work comes from bench/workload, from one seed. Every table is measured in
// rounds; in a round each contender has its turn, in an order that rotates, so that
// what the machine does besides falls on all alike. A figure is the median of all
// samples, the spread the lowest and the highest median of a round, and a ratio the
// median of the rounds' ratios.
//
// What a commit costs in fsyncs and bytes, and what a slow or a stalled disk does to
// the caller, is measured on a file system in user space (FUSE) that passes everything on,
// counts, and holds fsync back: see bench/fusedisk. Where FUSE cannot be
// mounted (that is: other than on Linux) those tables are left out, and the page says so.
// renameio has no rows on Windows.
//
// The table of bounds is that of the benchmarks of ../*_test.go, one process a round;
// its rows are in pairs, and one that was not measured says so. What people notice (the
// command on a usual project, beside git) goes into a readme, between two marks.
//
// Each suite has a share of the time that is left. When that is used up it begins no
// other round: there are fewer samples then, and percentiles may be left out.
//
// # Caveats
//
// The whole of this is one machine's answer. Ratios travel further than figures.
package main
