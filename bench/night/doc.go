// Command night works through a plan of 40 tasks with a stand-in agent that fails in the
// ways that real ones were seen to fail, and counts what a person finds in the morning:
// tasks done, boxes ticked without the work, work done twice, and how often somebody had to
// start the tool again.
//
//	go run ./bench/night                      lopen alone
//	go run ./bench/night -kills 10            with SIGKILL of lopen at random moments on top
//	go run ./bench/night -ralphex PATH        the same plan and stand-in under ralphex
//
// The stand-in is this program under the name claude. It prints what Claude Code prints with
// --output-format stream-json and does real work on real files. What it does for a task
// follows from the task's number and from how often it was started for it, so that each
// run of the program is the same but for the moments of the kills.
package main
