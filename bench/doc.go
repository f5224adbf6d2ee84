// Package bench holds the benchmarks of this project: go test -bench . ./bench/
//
// Figures of different machines do not compare. Each benchmark of a durable
// operation stands beside the floor that the same disk gives in the same run.
package bench
