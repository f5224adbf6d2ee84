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
// rows.go lists everything that is measured, every bound, and what each contender promises.
// A benchmark reports a figure of each of its sides; in this folder these are the
// contenders, each a Peer. How it is measured stands in ../README.md.
//
// Where the file system in user space cannot be mounted (other than on Linux) its rows are
// not there. renameio has no rows on Windows. A row that was not measured says so.
package main
