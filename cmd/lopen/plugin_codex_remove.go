package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plugin"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newPluginCodexRemove(a *app) *cobra.Command {
	return a.removePlugin("Take hooks.json away, if it is as lopen wrote it", func() (*plugin.Set, error) {
		set, _, err := a.codexSet()
		return set, err
	}, codexLeft)
}

// codexLeft says that a hooks.json of the person's own still calls lopen.
func codexLeft(set *plugin.Set) error {
	path := set.Path(plugin.CodexHooks)
	data, err := documents.ReadFile(path, maxHooks)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	calls := plugin.CodexCalls(data)
	if err != nil || len(calls) == 0 {
		return err
	}
	return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%s is your own, and still calls lopen: take the entries with \"hook codex\" out of %s", plain.Line(path), strings.Join(calls, ", "))}
}
