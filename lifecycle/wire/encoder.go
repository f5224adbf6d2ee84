package wire

import (
	"strconv"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// encoder appends compact JSON. The methods that take a key append a member and
// leave it out when its value is zero.
type encoder struct{ b []byte }

// key appends a member's name, which must not need escapes, with a comma if it is not the
// first.
func (e *encoder) key(k string) {
	if e.b[len(e.b)-1] != '{' {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, k...)
	e.b = append(e.b, '"', ':')
}

// element appends an object to the open array.
func (e *encoder) element(fn func()) {
	if e.b[len(e.b)-1] != '[' {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, '{')
	fn()
	e.b = append(e.b, '}')
}

// object appends a member that is an object, unless it would be empty.
func (e *encoder) object(k string, fn func()) {
	mark := len(e.b)
	e.key(k)
	e.b = append(e.b, '{')
	fn()
	if e.b[len(e.b)-1] == '{' {
		e.b = e.b[:mark]
		return
	}
	e.b = append(e.b, '}')
}

// array appends a member that is an array.
func (e *encoder) array(k string, fn func()) {
	e.key(k)
	e.b = append(e.b, '[')
	fn()
	e.b = append(e.b, ']')
}

func (e *encoder) str(k, v string) {
	if v != "" {
		e.key(k)
		e.quote(v)
	}
}

func (e *encoder) strs(k string, all []string) {
	if len(all) == 0 {
		return
	}
	e.key(k)
	for i, v := range all {
		e.b = append(e.b, "[,"[min(i, 1)])
		e.quote(v)
	}
	e.b = append(e.b, ']')
}

func (e *encoder) num(k string, v int64) {
	if v != 0 {
		e.int(k, v)
	}
}

// int appends a number even if it is zero.
func (e *encoder) int(k string, v int64) {
	e.key(k)
	e.b = strconv.AppendInt(e.b, v, 10)
}

func (e *encoder) uint(k string, v uint64) {
	if v != 0 {
		e.key(k)
		e.b = strconv.AppendUint(e.b, v, 10)
	}
}

func (e *encoder) uints(k string, all []uint64) {
	if len(all) == 0 {
		return
	}
	e.key(k)
	for i, v := range all {
		e.b = strconv.AppendUint(append(e.b, "[,"[min(i, 1)]), v, 10)
	}
	e.b = append(e.b, ']')
}

func (e *encoder) float(k string, v float64) {
	if v != 0 {
		e.key(k)
		e.b = strconv.AppendFloat(e.b, v, 'g', -1, 64)
	}
}

func (e *encoder) flag(k string, v bool) {
	if v {
		e.key(k)
		e.b = append(e.b, "true"...)
	}
}

func (e *encoder) time(k string, t time.Time) {
	if !t.IsZero() {
		e.key(k)
		e.b = append(e.b, '"')
		e.b = t.AppendFormat(e.b, time.RFC3339Nano)
		e.b = append(e.b, '"')
	}
}

// raw appends a value that is compact JSON, unless it is empty.
func (e *encoder) raw(k string, v strictjson.Value) {
	if len(v) > 0 {
		e.key(k)
		e.b = append(e.b, v...)
	}
}

func (e *encoder) extra(fields []session.Field) {
	for _, f := range fields {
		e.field(f.Key, f.Value)
	}
}

// field appends a member whose name may need escapes and whose value is JSON.
func (e *encoder) field(k string, v []byte) {
	if e.b[len(e.b)-1] != '{' {
		e.b = append(e.b, ',')
	}
	e.quote(k)
	e.b = append(append(e.b, ':'), v...)
}

const hexDigits = "0123456789abcdef"

// quote appends a string with only the escapes that JSON requires.
func (e *encoder) quote(s string) {
	e.b = append(e.b, '"')
	start := 0 // of the part that is not appended yet
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		e.b = append(e.b, s[start:i]...)
		switch c {
		case '"', '\\':
			e.b = append(e.b, '\\', c)
		case '\n':
			e.b = append(e.b, '\\', 'n')
		case '\t':
			e.b = append(e.b, '\\', 't')
		default:
			e.b = append(e.b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		start = i + 1
	}
	e.b = append(append(e.b, s[start:]...), '"')
}
