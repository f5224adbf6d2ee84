package wire

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An object describes the JSON object of a struct: a member for each field with a json tag,
// in the order of the fields. A member whose value is zero is left out, unless its tag has no
// omitzero.
type object struct {
	keys    []string // names of the members
	members []member
}

type member struct {
	key    string
	index  int     // of the field
	always bool    // written even if it is zero
	most   int     // largest number of elements of a list
	of     *object // type of the field, its pointer or its elements, if that is a struct
}

var (
	headerObject    = objectOf[session.Header]()
	markObject      = objectOf[session.Mark]()
	progressObject  = objectOf[session.Progress]()
	totalsObject    = objectOf[session.Totals]()
	sumsObject      = totalsObject.part("", "premiumRequests") // the sums in state.json
	summaryHeader   = headerObject.part("", "settings")        // members at the beginning of state.json
	summaryMark     = markObject.part("", "inherits")          // likewise
	taskObject      = objectOf[session.Task]()
	iterationObject = objectOf[session.Iteration]()
	recordObject    = objectOf[record.Record]()
)

// mostOf maps the names of lists that are bounded while they are read to their bounds.
var mostOf = map[string]int{"openCalls": session.MaxOpenCalls, "inherits": maxInherits}

var durationType = reflect.TypeFor[time.Duration]()

func objectOf[T any]() *object { return objectOfType(reflect.TypeFor[T]()) }

func objectOfType(t reflect.Type) *object {
	o := &object{}
	for i := range t.NumField() {
		key, option, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if key == "" {
			continue
		}
		inner := t.Field(i).Type
		if inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		m := member{key: key, index: i, always: option == "", most: cmp.Or(mostOf[key], math.MaxInt)}
		if inner.Kind() == reflect.Struct {
			m.of = objectOfType(inner)
		}
		o.keys, o.members = append(o.keys, key), append(o.members, m)
	}
	return o
}

// part returns the members from one name up to but without another. "" means from the first,
// or to the end.
func (o *object) part(from, to string) *object {
	first, end := max(slices.Index(o.keys, from), 0), slices.Index(o.keys, to)
	if to == "" {
		end = len(o.keys)
	}
	return &object{keys: o.keys[first:end], members: o.members[first:end]}
}

// members appends the members of the struct that of points to.
func (e *encoder) members(o *object, of any) { e.fields(o, reflect.ValueOf(of).Elem()) }

func (e *encoder) fields(o *object, v reflect.Value) {
	for i := range o.members {
		e.member(&o.members[i], v.Field(o.members[i].index))
	}
}

// member appends the value of a member.
func (e *encoder) member(m *member, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		e.str(m.key, v.String())
	case reflect.Int, reflect.Int64:
		switch n := v.Int(); {
		case n == 0 && !m.always:
		case v.Type() == durationType:
			e.str(m.key, time.Duration(n).String())
		default:
			e.int(m.key, n)
		}
	case reflect.Uint8:
		e.str(m.key, session.Box(v.Uint()).String())
	case reflect.Uint64:
		e.uint(m.key, v.Uint())
	case reflect.Float64:
		e.float(m.key, v.Float())
	case reflect.Bool:
		e.flag(m.key, v.Bool())
	default:
		e.composite(m, v)
	}
}

func (e *encoder) composite(m *member, v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		e.time(m.key, *p)
	case *strictjson.Value:
		e.raw(m.key, *p)
	case *[]string:
		e.strs(m.key, *p)
	case *[]uint64:
		e.uints(m.key, *p)
	case *session.ID:
		e.str(m.key, p.String())
	case **session.Rewinding:
		e.tagged(m.key, *p, *p != nil)
	case *[]record.Attempt:
		e.tagged(m.key, *p, len(*p) > 0)
	default:
		switch {
		case v.Kind() == reflect.Struct:
			e.object(m.key, func() { e.fields(m.of, v) })
		case v.Kind() == reflect.Pointer && !v.IsNil():
			e.object(m.key, func() { e.fields(m.of, v.Elem()) })
		case v.Kind() == reflect.Slice && v.Len() > 0:
			e.array(m.key, func() {
				for i := range v.Len() {
					e.element(func() { e.fields(m.of, v.Index(i)) })
				}
			})
		}
	}
}

// object reads an object into the struct that into points to. It ignores unknown members.
func (d *decoder) object(o *object, into any) { d.fields(o, reflect.ValueOf(into).Elem()) }

func (d *decoder) fields(o *object, v reflect.Value) {
	d.ObjectOf(o.keys, func(i int, _ string) {
		if i < 0 {
			d.Raw()
			return
		}
		d.member(&o.members[i], v)
	})
}

// known reads a member into the struct that into points to, if the object has a member of
// that name, and reports whether it does.
func (d *decoder) known(o *object, key string, into any) bool {
	i := slices.Index(o.keys, key)
	if i >= 0 {
		d.member(&o.members[i], reflect.ValueOf(into).Elem())
	}
	return i >= 0
}

// member reads the value of a member of a struct.
func (d *decoder) member(m *member, of reflect.Value) {
	switch v := of.Field(m.index); v.Kind() {
	case reflect.String:
		v.SetString(d.Text())
	case reflect.Int:
		v.SetInt(int64(d.int()))
	case reflect.Int64:
		if v.Type() == durationType {
			v.SetInt(int64(d.duration()))
		} else {
			v.SetInt(d.Int())
		}
	case reflect.Uint8:
		v.SetUint(uint64(d.box()))
	case reflect.Uint64:
		v.SetUint(d.Uint())
	case reflect.Float64:
		v.SetFloat(d.Float())
	case reflect.Bool:
		v.SetBool(d.Bool())
	default:
		d.composite(m, v)
	}
}

func (d *decoder) composite(m *member, v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = d.time()
	case *strictjson.Value:
		*p = d.raw()
	case *[]string:
		*p = d.strs(m.most)
	case *[]uint64:
		*p = d.uints(m.most)
	case *session.ID:
		*p = d.id()
	case **session.Rewinding:
		*p = tagged[session.Rewinding](d, "rewinding")
	case *[]record.Attempt:
		*p = d.attempts()
	default:
		switch v.Kind() {
		case reflect.Struct:
			d.fields(m.of, v)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			d.fields(m.of, v.Elem())
		case reflect.Slice:
			d.Array(func() {
				v.Grow(1)
				v.SetLen(v.Len() + 1)
				d.fields(m.of, v.Index(v.Len()-1))
			})
		}
	}
}
