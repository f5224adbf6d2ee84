// Package turns measures several ways to do the same work so that what else the machine
// does falls on all alike. It is for benchmarks.
package turns
