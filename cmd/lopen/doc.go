// Command lopen runs an agent loop over the tasks of a plan and looks after
// what it stores. See README.md for its use; `lopen --help` lists the commands.
//
// This package holds flags, rendering, prompts and exit codes. What a run does
// is in internal/loop, one supervised command in internal/child, the settings in
// internal/settings, and what may be run unasked in internal/trust. Only this
// package prints to the terminal, prompts or exits.
package main
