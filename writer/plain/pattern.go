package plain

import (
	"regexp"
	"sync"
)

// Pattern returns what compiles an expression once, when it is first used. Compiling all that
// read the words of agents and of tests takes longer than most commands, which use none.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
