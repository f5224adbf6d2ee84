package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plugin"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newPlugin(a *app) *cobra.Command {
	return group("plugin", "Have Claude Code or Codex call lopen at each prompt",
		group("claude", "The plugin for Claude Code", newPluginClaudeInstall(a), newPluginClaudeRemove(a)),
		group("codex", "The hooks for Codex", newPluginCodexInstall(a), newPluginCodexRemove(a)))
}

// agentFolder is where an agent looks for what is the user's: what a variable says, else a folder
// below HOME.
func (a *app) agentFolder(variable, below string) (string, error) {
	if dir := a.getenv(variable); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", usagef("%s is not an absolute path: %q", variable, dir)
		}
		return filepath.Clean(dir), nil
	}
	home, err := a.userHome()
	if err != nil {
		return "", fmt.Errorf("find the folder of the agent: %w", err)
	}
	return filepath.Join(home, below), nil
}

// userHome is the user's folder: HOME, or what the system has in its place.
func (a *app) userHome() (string, error) {
	home := a.getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir() // "" is no path
	}
	if !filepath.IsAbs(home) {
		return "", usagef("HOME is not an absolute path: %q", home)
	}
	return home, nil
}

// ownPath is the path that the agent is to start lopen by: the one that it was started by now, which
// may be a link that an update moves on, else that of the file.
func ownPath() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find lopen itself: %w", err)
	}
	called, err := exec.LookPath(os.Args[0])
	if err != nil {
		return exe, nil
	}
	if called, err = filepath.Abs(called); err != nil {
		return exe, nil
	}
	is, err := os.Stat(exe)
	if err != nil {
		return exe, nil
	}
	if info, err := os.Stat(called); err == nil && os.SameFile(is, info) {
		return called, nil
	}
	return exe, nil
}

// pluginVersion is the version as Claude Code wants it, by semver.
func pluginVersion() string {
	v := versionText()
	if v == "devel" {
		return "0.0.0-devel"
	}
	return strings.TrimPrefix(v, "v")
}

// install shows what is due of a set, asks, and writes it. It returns whether anything was written.
func (a *app) install(ctx context.Context, set *plugin.Set, yes bool) (bool, error) {
	files, err := set.Due()
	if err != nil {
		return false, inTheWay(err)
	}
	if len(files) == 0 {
		fmt.Fprintf(a.stderr, "nothing changes: %s is as it should be\n", plain.Line(filepath.Join(set.Base, set.Dir)))
		return false, set.Install() // a manifest that was lost
	}
	for _, f := range files {
		fmt.Fprintf(a.stdout, "%s\n", plain.Line(set.Path(f.Name)))
		for line := range strings.Lines(string(f.Data)) {
			fmt.Fprintf(a.stdout, "  %s\n", plain.Line(strings.TrimSuffix(line, "\n")))
		}
	}
	fmt.Fprintf(a.stdout, "%s\n  the names and hashes of these files, for lopen plugin remove\n", plain.Line(set.Path(plugin.Manifest)))
	if !yes {
		if !a.interactive() {
			return false, usagef("this writes the files above: say --yes")
		}
		agreed, err := a.agreed(ctx, "Write them?")
		if err == nil && !agreed {
			err = errors.New("nothing was written")
		}
		if err != nil {
			return false, err
		}
	}
	return true, inTheWay(set.Install())
}

// inTheWay says what to do about what is in the way.
func inTheWay(err error) error {
	var f *plugin.ForeignError
	if !errors.As(err, &f) {
		return err
	}
	for i, p := range f.Paths {
		f.Paths[i] = plain.Line(p)
	}
	return fmt.Errorf("%w; nothing was written: move it away, and install again", err)
}

// remove removes what is ours of a set, and names what stays.
func (a *app) remove(set *plugin.Set) error {
	found, stay, err := set.Remove()
	for _, p := range stay {
		fmt.Fprintf(a.stderr, "stays, since it is not as lopen wrote it: %s\n", plain.Line(p))
	}
	if err != nil {
		return err
	}
	if !found && len(stay) > 0 {
		return nil
	}
	if !found {
		fmt.Fprintf(a.stderr, "nothing of lopen is in %s\n", plain.Line(filepath.Join(set.Base, set.Dir)))
		return nil
	}
	fmt.Fprintf(a.stderr, "removed from %s; what was kept in projects stays\n", plain.Line(filepath.Join(set.Base, set.Dir)))
	return nil
}
