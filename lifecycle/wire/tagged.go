package wire

import (
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// tagged appends a value, if there is one, by the tags of its own type.
func (e *encoder) tagged(key string, v any, there bool) {
	if !there {
		return
	}
	if data, err := strictjson.Marshal(v); err == nil { // does not fail: Attempt.Size has encoded each of them
		e.raw(key, data)
	}
}

// The least encoded sizes, in bytes, of an Attempt, a FileChange and a ContextUse with the
// members that are always written. Shorter objects are refused, because "{}" would take four
// hundred bytes in memory.
const minAttempt, minFileChange, minContextUse = 128, 20, 20

func (d *decoder) attempts() (all []record.Attempt) {
	d.Array(func() {
		var a record.Attempt
		raw := d.Raw()
		if d.Reader.Err() != nil {
			return
		}
		if len(raw) > record.MaxAttempt {
			d.Fail("an attempt of more than %d bytes", record.MaxAttempt)
			return
		}
		if err := strictjson.Unmarshal([]byte(raw), &a); err != nil {
			d.Fail("attempts: %v", err)
			return
		}
		if len(raw) < minAttempt+minFileChange*len(a.Files)+minContextUse*len(a.Context) {
			d.Fail("members of an attempt are missing")
			return
		}
		all = append(all, a)
	})
	return all
}

// tagged reads a value by the tags of its own type.
func tagged[T any](d *decoder, what string) *T {
	v := new(T)
	if err := strictjson.Unmarshal([]byte(d.Raw()), v); err != nil && d.Reader.Err() == nil {
		d.Fail("%s: %v", what, err)
	}
	return v
}
