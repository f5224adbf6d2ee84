package loop

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// known is a session that has only a State.
type known struct {
	Session
	st *session.State
}

func (k known) State() *session.State { return k.st }

// Each variable of the command and each field of its metrics is in the help.
func TestHelpHasEachVariable(t *testing.T) {
	t.Parallel()
	m := reflect.TypeFor[metrics]()
	for i := range m.NumField() {
		require.Contains(t, prompt.Help, m.Field(i).Tag.Get("json"))
	}
	id, err := session.NewID("m", time.Now(), 1)
	require.NoError(t, err)
	st, err := session.New(id, time.Now())
	require.NoError(t, err)
	given := map[string]bool{}
	for _, v := range (&runner{sess: known{st: st}}).env("t", 1) {
		name, _, _ := strings.Cut(v, "=")
		given[name] = true
		require.Contains(t, prompt.Help, "  "+name+" ")
	}
	for _, name := range regexp.MustCompile(`LOPEN_[A-Z_]+`).FindAllString(prompt.Help, -1) {
		require.True(t, given[name] || name == "LOPEN_", name)
	}
}
