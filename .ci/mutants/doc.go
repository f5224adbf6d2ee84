// Command mutants takes the safety mechanisms out, one at a time, and requires that a test notices. Each is a row: an edit
// of one source file, laid over the build, and the one test that must fail then, by a verdict, and pass without it. One that
// hangs its test, does not build or ends the binary fails the run as one that survives does. A build of a package's tests has
// all mutants of functions, switched off, and a run is a copy of it with one on (Untch, Offutt and Harrold, "Mutation
// Analysis Using Mutant Schemata", 1993).
package main
