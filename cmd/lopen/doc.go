// Command lopen runs an agent loop over the tasks of a plan and looks after
// what it stores. See README.md for its use; `lopen --help` lists the commands.
//
// A file is named by its command: `lopen plan tick` is in plan_tick.go, and plan.go has the
// group and what its commands share. What several groups share is in store.go (opening the
// store), settings.go (the layers of settings and their flags), json.go (--json and its
// relatives), screen.go (the person in front of a run), log.go, exit.go and format.go.
//
// To add a command, write its file with a function newGroupVerb that returns a cobra.Command,
// name it in the group's function, and add a script to testdata/script.
//
// This package holds flags, rendering, prompts and exit codes. Below internal are: loop, what a
// run does; prompt, what an agent is asked; agent, what is known of agents; child, one
// supervised command; report, what became of a run; settings; trust, what may be run unasked;
// git, what a repository says of itself; owner, whose a file is; scratch, the temporary folder
// of a run; plain, what reaches a terminal of names and output; nearest, guesses at mistyped
// names; awake, a machine that does not fall asleep.
//
// # Concurrency
//
// The goroutine that executes the command owns app. Only this package prints to the terminal,
// prompts or exits; it prints to the streams of app, never to os.Stdout or os.Stderr.
package main
