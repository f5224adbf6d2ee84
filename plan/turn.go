package plan

import (
	"fmt"
	"math"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// A Turn says when a module is worked on where there are several, as the front matter of its
// plan has it: `priority: 1` and `after: [auth, db]`.
type Turn struct {
	Priority int      // the lowest is first; math.MaxInt where none is given
	After    []string // names of modules that have to be done before
}

// Turn returns what the front matter says. Entries that it does not know are ignored. The
// error says why the front matter cannot be read, or which entry means nothing.
func (p *Plan) Turn() (Turn, error) {
	t := Turn{Priority: math.MaxInt}
	fields, err := markdown.Meta(p.src)
	if err != nil {
		return t, err
	}
	for _, f := range fields {
		switch f.Name {
		case "priority":
			n, ok := number(f.Value)
			if !ok {
				return t, fmt.Errorf("read front matter: priority: %v is no whole number; 1 is first", f.Value)
			}
			t.Priority = n
		case "after":
			if t.After, err = names(f.Value); err != nil {
				return t, fmt.Errorf("read front matter: after: %w; give modules: after: [auth, db]", err)
			}
		}
	}
	return t, nil
}

// number is a number of front matter.
func number(v any) (int, bool) {
	switch n := v.(type) {
	case uint64:
		return int(min(n, math.MaxInt32)), true
	case int64:
		return int(max(n, math.MinInt32)), true
	}
	return 0, false
}

// names are a name, or a list of them.
func names(v any) (all []string, err error) {
	list, ok := v.([]any)
	if !ok && v != nil {
		list = []any{v}
	}
	for _, one := range list {
		name, ok := one.(string)
		if !ok || name == "" {
			return nil, fmt.Errorf("%v is no name", one)
		}
		all = append(all, name)
	}
	return all, nil
}
