package session_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// TestEveryFieldOfTheHeaderIsValidated gives each field that has a text, a time, a fraction
// or JSON in it a value that no file can hold: a State that takes it could not be read again.
func TestEveryFieldOfTheHeaderIsValidated(t *testing.T) {
	t.Parallel()
	seen := 0
	var spoil func(path string, typ reflect.Type, at func(h *session.Header) reflect.Value)
	spoil = func(path string, typ reflect.Type, at func(h *session.Header) reflect.Value) {
		var bad reflect.Value
		switch {
		case typ == reflect.TypeFor[time.Time]():
			bad = reflect.ValueOf(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))
		case typ == reflect.TypeFor[strictjson.Value]():
			bad = reflect.ValueOf(strictjson.Value(`{`))
		case typ == reflect.TypeFor[session.ID](), typ == reflect.TypeFor[[]session.Field]():
			return // an ID is made by checked constructors only; unknown fields have tests of their own
		case typ.Kind() == reflect.String:
			bad = reflect.ValueOf("\xff").Convert(typ)
		case typ.Kind() == reflect.Float64:
			bad = reflect.ValueOf(math.NaN())
		case typ.Kind() == reflect.Pointer:
			spoil(path, typ.Elem(), func(h *session.Header) reflect.Value {
				v := at(h)
				v.Set(reflect.New(typ.Elem()))
				return v.Elem()
			})
			return
		case typ.Kind() == reflect.Slice:
			spoil(path, typ.Elem(), func(h *session.Header) reflect.Value {
				v := at(h)
				v.Set(reflect.MakeSlice(typ, 1, 1))
				return v.Index(0)
			})
			return
		case typ.Kind() == reflect.Struct:
			for i := range typ.NumField() {
				spoil(path+"."+typ.Field(i).Name, typ.Field(i).Type, func(h *session.Header) reflect.Value { return at(h).Field(i) })
			}
			return
		default:
			return // any number and either truth can be written
		}
		seen++
		e := fresh(t).Edit()
		at(e.Header()).Set(bad)
		_, err := e.State()
		require.Error(t, err, "%s is not validated", path)
	}
	spoil("Header", reflect.TypeFor[session.Header](), func(h *session.Header) reflect.Value { return reflect.ValueOf(h).Elem() })
	require.Greater(t, seen, 30)
}
