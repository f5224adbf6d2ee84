package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/assess"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/redact"
)

// maxAssessed is how much output of a command is remembered, in bytes. What
// prints more is run each time.
const maxAssessed = 16 << 20

func newAssess(a *app) *cobra.Command {
	var scope []string
	cmd := &cobra.Command{
		Use:   "assess NAME [flags] -- CMD [ARG...]",
		Short: "Run CMD, or print what it printed if nothing changed since",
		Long: `Run CMD, or print what it printed if nothing in the scope changed since.

The scope is the project's files, or those that the patterns name, relative to the
project. What .gitignore and .lopenignore leave out is left out, but for a file or
folder that a pattern names without wildcards. CMD runs in the current folder. Only
what ended with exit 0 is remembered, and nothing if CMD changed the scope or printed
a credential.`,
		Example: `  lopen assess lint --scope '**/*.go' --scope go.mod -- golangci-lint run`,
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n != 1 || len(args) < 2 {
				return errors.New("give one NAME, and the command after --: lopen assess NAME -- CMD")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := map[string]string{}
			if ttl := cmd.Flags().Lookup("ttl"); ttl.Changed {
				flags["assessment_ttl"] = ttl.Value.String()
			}
			return a.assess(cmd.Context(), args[0], scope, flags, args[1:])
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&scope, "scope", nil, "files that decide: `GLOB`, with ** for any folders; may be given several times")
	settingFlag(f, "ttl", "run again what is older than `DURATION` (default 15m; 0 remembers nothing)")
	return cmd
}

func (a *app) assess(ctx context.Context, name string, scope []string, flags map[string]string, argv []string) error {
	project, here, err := a.places()
	if err != nil {
		return err
	}
	dir, err := a.start()
	if err != nil {
		return err
	}
	values, err := a.projectSettings(project, flags)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(project, lifecycle.Dir)); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(a.stderr, "there is no .lopen here: nothing is remembered; lopen init makes one")
	}
	look, err := assess.Files(here, scope)
	if err != nil {
		return &usageError{fmt.Errorf("--scope: %w", err)}
	}
	c := assess.Open(assess.Options{Store: filepath.Join(project, lifecycle.Dir), Logger: a.logger, Memory: a.memory(project)})
	defer c.Close()
	key := assess.Key{Name: name, Input: []string{dir, strings.Join(argv, "\x00"), strings.Join(scope, "\x00")}}
	r, hit, err := c.GetOrCompute(ctx, key, values.AssessmentTTL, look, func(ctx context.Context) ([]byte, error) {
		return a.assessed(ctx, dir, argv)
	})
	var big *tooMuch
	if errors.As(err, &big) {
		return nil // it was printed, and ended well
	}
	if err != nil || !hit {
		return err
	}
	a.logger.Debug().Str("name", name).Time("at", r.At).Msg("nothing in the scope changed: the output is that of last time")
	fmt.Fprintf(a.stderr, "%s: unchanged since %s\n", name, ago(time.Since(r.At)))
	return replay(r.Data, a.stdout.Output(), a.stderr.Output())
}

// tooMuch says that a command succeeded and printed what is not remembered: more than
// maxAssessed, or a credential.
type tooMuch struct{}

func (*tooMuch) Error() string { return "it printed too much, or a credential, to be remembered" }

// assessed runs a command, passes its output on and returns it for replay.
func (a *app) assessed(ctx context.Context, dir string, argv []string) ([]byte, error) {
	rec := &recording{}
	res, err := child.Run(ctx, child.Command{Argv: argv, Dir: dir, Env: a.environ,
		Stdout: rec.tee(1, a.stdout.Output()), Stderr: rec.tee(2, a.stderr.Output())})
	switch {
	case err != nil:
		return nil, err
	case res.Cause == child.CauseCanceled:
		return nil, ctx.Err()
	case res.Exit != 0:
		return nil, &loop.Exit{Code: max(res.Exit, 1), Reason: fmt.Sprintf("%s: exit %d", argv[0], res.Exit)}
	case res.LeftBehind, rec.full:
		return nil, &tooMuch{}
	}
	var rules redact.Redactor
	if _, n := rules.Bytes(rec.data.Bytes()); n > 0 {
		return nil, &tooMuch{} // a credential is not stored
	}
	return rec.data.Bytes(), nil
}

// A recording is output as it came: for each piece a byte that says of which
// stream (1 or 2), its length as an unsigned varint, and its bytes.
type recording struct {
	mu   sync.Mutex
	data bytes.Buffer // Guarded by mu.
	full bool         // Guarded by mu: something was left out.
}

// tee returns a writer that records what it passes on.
func (r *recording) tee(stream byte, w io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.full = r.full || r.data.Len()+len(p) > maxAssessed; !r.full {
			r.data.Write(binary.AppendUvarint([]byte{stream}, uint64(len(p))))
			r.data.Write(p)
		}
		return w.Write(p)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// replay prints a recording.
func replay(data []byte, stdout, stderr io.Writer) error {
	for len(data) > 0 {
		n, size := binary.Uvarint(data[1:])
		if size <= 0 || n > uint64(len(data)-1-size) {
			return errors.New("replay output: the recording is damaged")
		}
		w := stdout
		if data[0] == 2 {
			w = stderr
		}
		end := 1 + size + int(n)
		if _, err := w.Write(data[1+size : end]); err != nil {
			return err
		}
		data = data[end:]
	}
	return nil
}
