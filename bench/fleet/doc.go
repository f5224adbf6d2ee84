// Fleet measures sessions that are shipped to PostgreSQL, on servers that it starts. It is for
// benchmarks.
//
//	go run ./bench/fleet -out bench/FLEET.md
//
// It measures what a fleet costs a session whose database is idle, slow, down or half-open, beside the same
// session without one; 1,000 sessions of three processes beside the same work where each save is an UPDATE
// of one row; a takeover; and the memory of a process whose database is down. -quick does little of each.
//
// The sides of a comparison work in turns. A process that holds sessions is this program again: see runner.
package main
