package loop

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// known is a session that has a State and nothing else.
type known struct {
	Session
	st *session.State
}

func (k known) State() *session.State { return k.st }

// Each field of a template and each variable stands in the help.
func TestHelpOfThePrompt(t *testing.T) {
	t.Parallel()
	var fields func(reflect.Type)
	fields = func(of reflect.Type) {
		for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			return
		}
		for i := range of.NumField() {
			require.Regexp(t, `\.`+of.Field(i).Name+`\b`, PromptHelp, "field of %s", of.Name())
			fields(of.Field(i).Type)
		}
	}
	fields(reflect.TypeFor[Prompt]())
	m := reflect.TypeFor[metrics]()
	for i := range m.NumField() {
		require.Contains(t, PromptHelp, m.Field(i).Tag.Get("json"))
	}
	id, err := session.NewID("m", time.Now(), 1)
	require.NoError(t, err)
	st, err := session.New(id, time.Now())
	require.NoError(t, err)
	given := map[string]bool{}
	for _, v := range (&Runner{sess: known{st: st}}).env("t", 1) {
		name, _, _ := strings.Cut(v, "=")
		given[name] = true
		require.Contains(t, PromptHelp, "  "+name+" ")
	}
	for _, name := range regexp.MustCompile(`LOPEN_[A-Z_]+`).FindAllString(PromptHelp, -1) {
		require.True(t, given[name] || name == "LOPEN_", name)
	}
	for line := range strings.Lines(PromptHelp) {
		require.LessOrEqual(t, len(line), 80)
	}
}
