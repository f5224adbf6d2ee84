// Command mutants takes the safety mechanisms out, one at a time, and requires
// that a test notices. Each mutant is an edit of one source file, laid over the
// build with -overlay: the tree stays as it is.
package main
