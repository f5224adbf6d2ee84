// Command lopen runs an agent loop over the tasks of a plan and looks after
// what it stores. See README.md for its use; `lopen --help` lists the commands.
//
// This package holds flags, rendering, prompts and exit codes. What a run does
// is in internal/loop, one supervised command in internal/child, the settings in
// internal/settings, what may be run unasked in internal/trust, what a repository says of
// itself in internal/git, and what reaches a terminal of names and output in
// internal/plain. Only this package prints to the terminal, prompts or exits; it prints
// to the streams of app, never to os.Stdout or os.Stderr.
package main
