package checkpoint

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/cache/files"
)

// hides draws how much is stored of what only rules of tasks ignore, so that some is hidden.
func (m *model) hides() {
	if n := rapid.IntRange(-1, 2).Draw(m.t, "budget"); n >= 0 && !m.plain {
		m.budget = &files.Budget{Files: n, Bytes: 1 << 20}
	}
}

// scaffolds is a task that writes a rule, and some of what that ignores.
func (m *model) scaffolds() {
	a := m.session(func(a *actor) bool { return a.working > 0 })
	rule := rapid.SampledFrom([]string{"d/", "g/", "a", "x", "b\ng/", "*"}).Draw(m.t, "rule")
	m.write(false, func() error { return m.change(".gitignore", fmt.Sprintf("%s\n#%d", rule, m.next())) })
	m.edits(false, a.id)
}
