package prompt

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each field of a template is in the help, which fits on a terminal.
func TestHelpHasEachField(t *testing.T) {
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
			require.Regexp(t, `\.`+of.Field(i).Name+`\b`, Help, "field of %s", of.Name())
			fields(of.Field(i).Type)
		}
	}
	fields(reflect.TypeFor[data]())
	for line := range strings.Lines(Help) {
		require.LessOrEqual(t, len(line), 80)
	}
}
