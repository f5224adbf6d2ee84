package wire

import (
	"reflect"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// taskKeys are the known members of a task.
var taskKeys = append(slices.Clip(taskObject.keys), "children")

// children reads the tasks of a parent, and everything beneath them, into d.tasks, and
// returns their IDs. Parents and children name each other by construction, so that only
// duplicate IDs are left to check at the end.
func (d *decoder) children(parent string, depth int) []string {
	base := len(d.ids)
	d.Array(func() {
		if depth > session.MaxTaskDepth {
			d.Fail("tasks are nested more than %d levels deep", session.MaxTaskDepth)
			return
		}
		id := d.task(parent, depth)
		d.ids = append(d.ids, id)
	})
	if len(d.ids) == base {
		return nil
	}
	ids := slices.Clone(d.ids[base:])
	d.ids = d.ids[:base]
	return ids
}

func (d *decoder) task(parent string, depth int) string {
	place, t := d.tasks.Begin()
	orphans := false // the children came before the ID, because a tool sorted the members
	v := reflect.ValueOf(t).Elem()
	d.ObjectOf(taskKeys, func(i int, key string) {
		switch {
		case i < 0:
			t.Extra = append(t.Extra, session.Field{Key: key, Value: d.raw()})
		case i < len(taskObject.members):
			d.member(&taskObject.members[i], v)
		default:
			orphans = t.ID == ""
			t.Children = d.children(t.ID, depth+1)
		}
	})
	if d.Reader.Err() != nil {
		return ""
	}
	if err := d.tasks.End(place, parent); err != nil {
		d.Fail("%v", err)
		return ""
	}
	if orphans {
		d.tasks.Adopt(place) // tasks further down have their parents already
	}
	return t.ID
}

func (d *decoder) box() session.Box {
	switch s := d.Text(); s {
	case session.BoxOpen.String():
		return session.BoxOpen
	case session.BoxTicked.String():
		return session.BoxTicked
	default:
		d.Fail("%q is no box", s)
		return session.BoxNone
	}
}

func (d *decoder) iterations() (all []session.Iteration) {
	d.Array(func() {
		all = append(all, session.Iteration{})
		it := &all[len(all)-1]
		d.object(iterationObject, it)
		if err := it.Validate(); err != nil {
			d.Fail("%v", err)
		}
	})
	return all
}
