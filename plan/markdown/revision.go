package markdown

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// rules grows when this package begins to read the same bytes differently.
const rules = 2

// Revision names what the parser's answers depend on besides the bytes: the
// rules of this package and the version of goldmark. Who keeps answers keeps it
// with them.
var Revision = sync.OnceValue(func() string {
	goldmark := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/yuin/goldmark" {
				for dep.Replace != nil {
					dep = dep.Replace
				}
				goldmark = dep.Version + " " + dep.Sum
			}
		}
	}
	return fmt.Sprintf("%d goldmark %s", rules, goldmark)
})
