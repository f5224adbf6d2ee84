package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/terminal"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}

// softLimit is the memory in bytes above which the collector works harder than it would: by
// itself it lets garbage grow to as much as is in use. What needs more gets it, at up to half
// of the processor's time. GOMEMLIMIT overrides it.
const softLimit = 160 << 20

// run is the whole program. The first interrupt cancels the command, which saves and prints
// how to resume; the second kills what was started: see interrupts.
func run(args []string, stdin *os.File, stdout, stderr io.Writer, environ []string) int {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	app := &app{stdin: stdin, args: args}
	app.takeSecrets(environ)
	app.stdout, app.stderr = terminal.Streams(stdout, stderr)
	defer interrupts(cancel, app.stderr)()
	defer func() { _ = errors.Join(app.stdout.Close(), app.stderr.Close()) }()
	root := newRoot(app)
	root.SetArgs(dashedWords(root, args))
	root.SetIn(stdin)
	root.SetOut(app.stdout)
	root.SetErr(app.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(app.stderr, "lopen: %v\n%s", err, hint(err))
	return exitCode(err)
}
