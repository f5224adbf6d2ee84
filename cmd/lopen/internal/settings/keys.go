package settings

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/nearest"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// The types of a setting's value.
const (
	kindBool     = "bool"
	kindInt      = "int"
	kindDuration = "time.Duration"
	kindStrings  = "[]string"         // a JSON array of strings
	kindNumber   = "float64"          // a JSON number from 0 on
	kindObject   = "strictjson.Value" // a JSON object, read by who uses it; only in a file
)

// The rules.
const (
	ofUser  = "user"
	adds    = "adds"
	inside  = "inside"
	fills   = "fills"
	setHere = "set-here"
)

// What of a setting is stricter, where that is not the one value that the tag names.
const (
	lower  = "lower"  // a number; 0 is no limit
	higher = "higher" // a number; 0 is no limit
	least  = "least"  // a number; 0 is the least
	filled = "filled" // a text; any rather than none
)

// A Key is one setting, as the tag of its field in [Values] says.
type Key struct {
	Name, Help string

	field   int // of Values
	kind    string
	initial string // its default as text, "" for the zero value
	oneOf   []string
	most    int    // the largest number; 0 for any
	rule    string // user, adds, inside, fills, set-here, or none

	stricter string // which way, see [Values]; "" where neither is
}

// Flag is the setting's flag: its name with dashes.
func (k Key) Flag() string { return strings.ReplaceAll(k.Name, "_", "-") }

// Variable is the setting's environment variable.
func (k Key) Variable() string { return "LOPEN_" + strings.ToUpper(k.Name) }

var keys = keysOf(reflect.TypeFor[Values]())

func keysOf(t reflect.Type) (all []Key) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		k := Key{Name: f.Tag.Get("json"), Help: f.Tag.Get("help"), field: i, kind: f.Type.String(), initial: f.Tag.Get("default"), rule: f.Tag.Get("rule"), stricter: f.Tag.Get("stricter")}
		k.most, _ = strconv.Atoi(f.Tag.Get("most"))
		if of := f.Tag.Get("of"); of != "" {
			k.oneOf = strings.Split(of, ", ")
		}
		all = append(all, k)
	}
	return all
}

// Keys returns all settings.
func Keys() []Key { return slices.Clone(keys) }

func find(name string) (Key, error) {
	if i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name }); i >= 0 {
		return keys[i], nil
	}
	return Key{}, fmt.Errorf("no setting is called %q; nearest is %q", name, nearestKey(name))
}

// nearestKey returns the setting whose name takes the fewest edits from name.
func nearestKey(name string) string {
	return nearest.Of(name, func(yield func(string) bool) {
		for _, k := range keys {
			if !yield(k.Name) {
				return
			}
		}
	}, 1)[0]
}

// parse reads a value as text, from a flag, a variable or `config set`.
func (k Key) parse(s string) (any, error) {
	switch k.kind {
	case kindBool:
		return k.parseBool(s)
	case kindInt:
		return k.parseInt(s)
	case kindDuration:
		if d, err := parseDuration(s); err == nil && d >= 0 {
			return d, nil
		}
		return nil, k.bad(s, "a duration such as 90s, 10m, 6h or 7d; 0 is off")
	case kindStrings:
		var all []string
		if strictjson.Unmarshal([]byte(s), &all) != nil {
			return nil, k.bad(s, `a list like ["one", "two"]`)
		}
		if k.rule == adds {
			if _, err := redact.New(all); err != nil {
				return nil, fmt.Errorf("%s: %w", k.Name, err)
			}
		}
		return all, nil
	case kindNumber:
		if n, err := strconv.ParseFloat(s, 64); err == nil && n >= 0 && !math.IsInf(n, 0) {
			return n, nil
		}
		return nil, k.bad(s, "a number from 0 on")
	case kindObject:
		return nil, fmt.Errorf("%s is an object: write it into config.json", k.Name)
	}
	return k.parseText(s)
}

func (k Key) parseBool(s string) (any, error) {
	switch strings.ToLower(s) {
	case "true", "1", "yes", "on":
		return true, nil
	case "false", "0", "no", "off":
		return false, nil
	}
	return nil, k.bad(s, "true or false")
}

func (k Key) parseInt(s string) (any, error) {
	n, err := strconv.Atoi(s)
	switch {
	case k.most > 0 && (err != nil || n < 1 || n > k.most):
		return nil, k.bad(s, fmt.Sprintf("a whole number from 1 to %d", k.most))
	case err != nil || n < 0:
		return nil, k.bad(s, "a whole number from 0 on")
	}
	return n, nil
}

func (k Key) parseText(s string) (any, error) {
	if k.stricter == filled && strings.TrimSpace(s) == "" {
		s = "" // blanks are a command that does nothing, and succeeds
	}
	switch {
	case len(k.oneOf) > 0 && !slices.Contains(k.oneOf, s):
		return nil, k.bad(s, "one of "+strings.Join(k.oneOf, ", "))
	case k.rule == inside && (!filepath.IsLocal(filepath.FromSlash(s)) || InGit(s)):
		return nil, k.bad(s, "a folder within the project, relative to it and not in .git")
	}
	return s, nil
}

func (k Key) bad(v any, want string) error {
	return fmt.Errorf("%s: %q is not right: give %s", k.Name, fmt.Sprint(v), want)
}

// parseDuration knows days besides Go's units; a day has 24 hours.
func parseDuration(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || n < 0 || n > 36500 {
			return 0, fmt.Errorf("bad number of days %q", days)
		}
		return time.Duration(n * float64(24*time.Hour)), nil
	}
	return time.ParseDuration(s)
}

// parseJSON reads a value from config.json: its own JSON type, or its text.
func (k Key) parseJSON(v any) (any, error) {
	switch x := v.(type) {
	case string:
		return k.parse(x)
	case []any:
		if k.kind == kindStrings {
			text, err := strictjson.Marshal(x)
			if err != nil {
				return nil, err
			}
			return k.parse(string(text))
		}
	case bool:
		if k.kind == kindBool {
			return x, nil
		}
	case map[string]any:
		if k.kind == kindObject {
			object, err := strictjson.Marshal(x)
			return strictjson.Value(object), err
		}
	case float64:
		if k.kind == kindNumber || k.kind == kindInt || k.kind == kindDuration && x == 0 {
			return k.parse(strconv.FormatFloat(x, 'f', -1, 64))
		}
	}
	return nil, k.bad(v, "a value of its own type")
}

// shown is a value as config.json and `config show` have it.
func shown(v any) any {
	switch v := v.(type) {
	case time.Duration:
		return v.String()
	case []string:
		return append([]string{}, v...) // never null
	}
	return v
}
