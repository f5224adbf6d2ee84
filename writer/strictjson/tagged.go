package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// A Value is the text of one JSON value. It is written without white space and read as it
// stands. The zero value is written as null.
type Value []byte

// MarshalJSON is for packages that write JSON.
func (v Value) MarshalJSON() ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	return v, nil
}

// UnmarshalJSON is for packages that read JSON.
func (v *Value) UnmarshalJSON(data []byte) error {
	*v = append((*v)[:0], data...)
	return nil
}

var (
	// durations is how a [time.Duration] stands in JSON: as its nanoseconds.
	durations = jsonv1.FormatDurationAsNano(true)
	// written is part of the formats. A Value keeps its escapes and may have a name twice.
	// Bytes that are not UTF-8 become U+FFFD, so that no save fails for the name of a file.
	written = json.JoinOptions(durations, json.Deterministic(true), json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true),
		jsonv1.OmitEmptyWithLegacySemantics(true), jsontext.EscapeForJS(true),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
	inFiles = json.JoinOptions(written, jsontext.EscapeForHTML(true))
	inLines = json.JoinOptions(inFiles, jsontext.WithIndent("  "))
	// foreign is what other programs may write.
	foreign = json.JoinOptions(durations, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
)

// Marshal returns a value as compact JSON by its struct tags. Equal values have the same
// bytes: members of a map are sorted, a nil slice or map is null, and &, < and > are
// escaped. The tag omitempty leaves out false, 0, "", nil, and what has no elements. The
// error names what has no JSON: a float that is no number, a year beyond 9999, a
// Value that is malformed.
func Marshal(v any) ([]byte, error) { return write(v, inFiles) }

// MarshalLines is [Marshal] with one member a line, for files that people edit.
func MarshalLines(v any) ([]byte, error) { return write(v, inLines) }

// MarshalShown is [Marshal] with &, < and > as they are, for output that people read.
func MarshalShown(v any) ([]byte, error) { return write(v, written) }

// Indent writes JSON with two spaces a level. It does not have the result in memory: deep in
// a list a byte has a hundred of them before it.
func Indent(w io.Writer, data []byte) error {
	from, to := jsontext.NewDecoder(bytes.NewBuffer(data), foreign), jsontext.NewEncoder(w, foreign, jsontext.PreserveRawStrings(true), jsontext.WithIndent("  "))
	for {
		token, err := from.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = to.WriteToken(token)
		}
		if err != nil {
			return err
		}
	}
}

func write(v any, how json.Options) ([]byte, error) {
	data, err := json.Marshal(v, how)
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok && wrong.Err != nil {
		err = fmt.Errorf("%s: %w", strings.TrimPrefix(string(wrong.JSONPointer), "/"), wrong.Err)
	}
	return data, err
}

// Unmarshal reads one JSON value into v by its struct tags. It refuses a name that
// stands twice in an object, text that is not UTF-8, lone surrogates, more than
// [MaxDepth] levels, and anything behind the value. It skips a member that v has no field
// for; names are compared with their case. The error begins with the place: the byte, or
// the line and column of a text of several lines. After an error v is undefined.
func Unmarshal(data []byte, v any) error {
	if at := tooDeep(data); at >= 0 {
		return fmt.Errorf("%s: more than %d levels deep", place(data, at), MaxDepth)
	}
	return located(data, json.Unmarshal(data, v, durations))
}

// ErrMember is wrapped by errors of [UnmarshalForeign] that concern a member alone: the
// others are read.
var ErrMember = errors.New("a member has another type")

// UnmarshalForeign reads what another program wrote, up to 10,000 levels. The last one of
// several members of a name counts, and text that is not UTF-8 becomes U+FFFD. It reads on
// behind a member whose value does not fit its field, and wraps ErrMember.
func UnmarshalForeign(data []byte, v any) error {
	err := json.Unmarshal(data, v, foreign, jsonv1.MergeWithLegacySemantics(true), jsonv1.ReportErrorsWithLegacySemantics(true))
	if wrong, ok := errors.AsType[*jsonv1.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Errorf("%s: %w", wrong.Field, ErrMember)
	}
	return err
}

// UnmarshalLenient is [UnmarshalForeign] that leaves out the members that do not fit.
func UnmarshalLenient(data []byte, v any) error {
	if err := UnmarshalForeign(data, v); !errors.Is(err, ErrMember) {
		return err
	}
	return nil
}

// NextForeign returns the first JSON value of a text that another program wrote, and
// what stands behind it. The error is [io.EOF] where only white space is left.
func NextForeign(data []byte) (v Value, rest []byte, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(data), foreign)
	next, err := d.ReadValue()
	if err != nil {
		return nil, data, located(data, err)
	}
	return Value(next.Clone()), data[d.InputOffset():], nil
}

// tooDeep returns the place of the first bracket that is nested too deeply, -1 without one.
func tooDeep(data []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// place names a byte of a text.
func place(data []byte, at int) string {
	if bytes.IndexByte(bytes.TrimSpace(data), '\n') < 0 {
		return fmt.Sprintf("byte %d", at)
	}
	before := data[:min(at, len(data))]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

// located words an error as those of a [Reader] are.
func located(data []byte, err error) error {
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		what := wrong.Err.Error()
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			what = fmt.Sprintf("the key %q stands twice", wrong.JSONPointer.LastToken())
		case errors.Is(err, io.ErrUnexpectedEOF):
			what = "the text ends before the value does"
		}
		return fmt.Errorf("%s: %s", place(data, int(wrong.ByteOffset)), what)
	}
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		what := "want " + wanted(wrong.GoType)
		if wrong.Err != nil && !isNumber(wrong.GoType) {
			what = wrong.Err.Error()
		}
		if path := strings.TrimPrefix(string(wrong.JSONPointer), "/"); path != "" {
			what = path + ": " + what
		}
		return fmt.Errorf("%s: %s", place(data, int(wrong.ByteOffset)), what)
	}
	return err
}

func isNumber(t reflect.Type) bool {
	return t != nil && t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64
}

// wanted is the JSON that a type stands in.
func wanted(t reflect.Type) string {
	switch {
	case t == nil:
		return "another value"
	case t == reflect.TypeFor[time.Time]():
		return "a time"
	case t.Kind() == reflect.Float64:
		return "a number"
	case isNumber(t):
		return "a whole number within its bounds"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a text"
}
