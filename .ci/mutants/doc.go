// Command mutants takes the safety mechanisms out, one at a time, and requires
// that a test notices. Each mutant is an edit of one source file, laid over the
// build with -overlay: the tree stays as it is.
//
// A mutant names the one test that must notice it, and only that test runs, so that
// all mutants together take minutes. A control runs first: every named test must run
// and pass without a mutant, else its failure would prove nothing. Only a test that
// fails counts as notice; a mutant that hangs its test, that does not build or that
// ends the test binary without a verdict fails the run as one that survives does.
package main
