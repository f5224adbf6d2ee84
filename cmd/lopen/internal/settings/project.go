package settings

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Whose says who sets a setting: "user", whose own it is; "stricter: " and what a project may
// make of the user's; or "free".
func (k Key) Whose() string {
	switch {
	case k.rule == ofUser || k.rule == setHere:
		return "user"
	case k.stricter == filled:
		return "stricter: any"
	case k.stricter == lower && k.kind != kindDuration || k.stricter == least:
		return "stricter: less"
	case k.stricter == lower:
		return "stricter: shorter"
	case k.stricter == higher:
		return "stricter: more"
	case k.stricter != "":
		return "stricter: " + k.stricter
	}
	return "free"
}

// OfUser says of a setting, by its name, that it is the user's own: a project's config.json cannot set it.
func OfUser(name string) bool {
	k, err := find(name)
	return err == nil && k.rule == ofUser
}

// Guards says of a setting, by its name, that a project's value of it counts only where it is stricter
// than the user's, or where the user set it there.
func Guards(name string) bool {
	k, err := find(name)
	return err == nil && (k.stricter != "" || k.rule == fills || k.rule == setHere)
}

// project lays the project's config.json over what is there, and what the user set in the project. Whatever is wrong in
// it counts for nothing, and stops no run: an agent or a checkout may have written it.
func (v *Values) project(from *Sources) {
	const where = ".lopen/config.json"
	there := map[string]any{}
	wrong := func(err error) error {
		v.wrong = append(v.wrong, fmt.Sprintf("%s: %v: it counts for nothing", where, err))
		return nil
	}
	ignore := func(k Key, why string) {
		v.ignored = append(v.ignored, fmt.Sprintf("%s: %s is ignored: %s", where, k.Name, why))
	}
	mine := v.workerNamed(from)
	if from.Unread != nil {
		_ = wrong(from.Unread)
	}
	_ = v.file(from.Project, func(k Key, value any) {
		there[k.Name] = value
		switch list, isList := value.([]string); {
		case k.rule == ofUser:
			ignore(k, k.whose())
		case k.rule == adds && isList:
			v.put(k, append(slices.Clip(v.of(k).Interface().([]string)), list...), SourceProject)
		case k.rule == setHere || k.rule == fills && mine:
			if v.isNoted(k, from, value) {
				v.put(k, value, SourceHere)
			} else if !v.is(k, value) {
				ignore(k, "that is yours to say; "+setHereBy(k, value))
			}
		case k.stricter == "":
			v.put(k, value, SourceProject)
		}
	}, wrong)
	for _, k := range keys {
		if k.stricter != "" {
			value, has := there[k.Name]
			v.guard(k, from, value, has, ignore)
		}
	}
}

// workerNamed says that the user names an agent or a command, so that a project has none to name.
func (v *Values) workerNamed(from *Sources) bool {
	for _, name := range []string{"agent", "command"} {
		k, _ := find(name)
		_, typed := from.Flags[name]
		if typed || v.source[name] == SourceUser || k.variable(from.Environ) != "" {
			return true
		}
	}
	return false
}

// guard decides a setting that a project may tighten and never loosen. has says that the project's
// config.json has a value.
func (v *Values) guard(k Key, from *Sources, value any, has bool, ignore func(Key, string)) {
	set, known := k.noted(from)
	same := known && from.Here[k.Name].Same
	switch {
	case has && same && reflect.DeepEqual(value, set):
		v.put(k, set, SourceHere)
		return
	case known && (k.isStricter(set, v.value(k)) || same && k.stricter == filled && set != ""):
		if v.put(k, set, SourceHere); !has {
			v.ignored = append(v.ignored, fmt.Sprintf(".lopen/config.json no longer has %[1]s, and what you set here stays, %[2]s: config set changes it", k.Name, word(set)))
			return
		}
	}
	if has && !v.is(k, value) {
		v.tighten(k, value, ignore)
	}
}

// tighten takes a project's value where it is stricter.
func (v *Values) tighten(k Key, value any, ignore func(Key, string)) {
	switch {
	case k.isStricter(value, v.value(k)):
		v.put(k, value, SourceProject)
	case k.stricter == filled && value != "":
		ignore(k, fmt.Sprintf("yours is %s; ", word(v.value(k)))+setHereBy(k, value))
	default:
		ignore(k, fmt.Sprintf("%s is less strict than yours, %s; ", word(value), word(v.value(k)))+setHereBy(k, value))
	}
}

// noted is what the user set in the project, if it can still be read.
func (k Key) noted(from *Sources) (any, bool) {
	n, ok := from.Here[k.Name]
	if !ok {
		return nil, false
	}
	var raw any
	if strictjson.Unmarshal(n.Value, &raw) != nil {
		return nil, false
	}
	value, err := k.parseJSON(raw)
	return value, err == nil
}

// isNoted says that the user set this value in this very project.
func (v *Values) isNoted(k Key, from *Sources, value any) bool {
	set, known := k.noted(from)
	return known && from.Here[k.Name].Same && reflect.DeepEqual(set, value)
}

func (v *Values) value(k Key) any { return v.of(k).Interface() }

// is says that a setting has a value.
func (v *Values) is(k Key, value any) bool { return reflect.DeepEqual(v.value(k), value) }

// isStricter says that one value of the setting is stricter than another.
func (k Key) isStricter(a, b any) bool {
	switch x, y := number(a), number(b); k.stricter {
	case lower:
		return x > 0 && (y == 0 || x < y)
	case higher:
		return y > 0 && (x == 0 || x > y)
	case least:
		return x < y
	case filled:
		return a != "" && b == ""
	}
	return fmt.Sprint(a) == k.stricter && fmt.Sprint(b) != k.stricter
}

// number is a setting's value as one; that of what is none is 0.
func number(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case float64:
		return v
	case time.Duration:
		return float64(v)
	}
	return 0
}

// setHereBy says how a project's value counts.
func setHereBy(k Key, value any) string {
	return plain.Quote("lopen", "config", "set", k.Name, text(value)) + " makes it count here"
}

// text is a value as it is given to config set.
func text(v any) string {
	if list, ok := v.([]string); ok {
		data, _ := strictjson.Marshal(list) // strings
		return string(data)
	}
	return fmt.Sprint(v)
}

// word is a value as it is typed.
func word(v any) string { return plain.Quote(text(v)) }

// InGit says of a path below the project that it leads into a repository's own files.
func InGit(path string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(path), "/"), func(name string) bool { return strings.EqualFold(name, ".git") })
}
