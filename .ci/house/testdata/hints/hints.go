// Package hints has sentences with commands, for the test of those that are open.
package hints

import (
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// Open returns hints that put any text into a command.
func Open(path, task string) []string {
	return []string{
		"others may read it: chmod 700 " + path,
		fmt.Sprintf("%s is open: git -C %[1]s status, or lopen plan tick m %s", path, task),
		fmt.Sprintf("of %d lines:\n  lopen session output %v --session latest", 7, []string{task}),
	}
}

// Shut returns hints that do not.
func Shut(path, task, module string, id session.ID, n int) []string {
	return []string{
		"others may read it: chmod 700 " + plain.Quote(path),
		fmt.Sprintf("%s stays, lopen did nothing: lopen run %s; then %s", path, module, task),
		fmt.Sprintf("lopen session show %s --at %d (%s)", id, n, task),
		"git of " + path,
	}
}
