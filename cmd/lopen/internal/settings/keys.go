package settings

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/nearest"
)

// kind is the type of a setting's value.
type kind uint8

const (
	kindBool kind = iota
	kindInt
	kindDuration
	kindString
	kindStrings // a JSON array of strings
	kindNumber  // a JSON number from 0 on
	kindObject  // a JSON object, read by who uses it; only in a file
)

// A Key is one setting.
type Key struct {
	Name    string // as in config.json
	Default any
	Help    string
	kind    kind
	oneOf   []string
	// userOnly says that a project's config.json does not count: what comes with a
	// clone must not decide it. The user's config.json, the variable and the flag do.
	userOnly bool
	// adds says of a list that the project's is appended to the user's and replaces none of it.
	adds   bool
	inside bool // is a path that stays within the project
}

// Flag is the setting's flag: its name with dashes.
func (k Key) Flag() string { return strings.ReplaceAll(k.Name, "_", "-") }

// Variable is the setting's environment variable.
func (k Key) Variable() string { return "LOPEN_" + strings.ToUpper(k.Name) }

// keys are the settings that lopen has today. 0 is off or no limit.
var keys = []Key{
	{Name: "auto_resume", kind: kindBool, Default: true, Help: "go on with an unfinished session when nobody can be asked"},
	{Name: "session_retention", kind: kindInt, Default: 10, Help: "completed sessions that prune keeps"},
	{Name: "retention_days", kind: kindInt, Default: 0, Help: "days after which prune takes a completed session"},
	{Name: "retention_bytes", kind: kindInt, Default: 0, Help: "bytes that all completed sessions may take"},
	{Name: "trash_days", kind: kindInt, Default: 7, Help: "days for which a pruned session can be restored"},
	{Name: "save_iteration_history", kind: kindBool, Default: false, Help: "keep the whole state at each iteration"},
	{Name: "snapshot_interval", kind: kindInt, Default: 50, Help: "keep the whole state every so many saves"},
	{Name: "snapshot_retention", kind: kindInt, Default: 5, Help: "whole states of each kind that are kept"},
	{Name: "autosave_interval", kind: kindDuration, Default: time.Duration(0), Help: "save what changed without a save after this time"},
	{Name: "checkpoint", kind: kindBool, Default: true, Help: "keep the project's files before and after each task"},
	{Name: "checkpoint_bytes", kind: kindInt, Default: 2 << 30, Help: "bytes that checkpoints may take, at most a tenth of the free space"},
	{Name: "journal_bytes", kind: kindInt, Default: 256 << 20, Help: "bytes that the log of a session may take, without messages, events and attempts"},
	{Name: "require_change", kind: kindBool, Default: false, Help: "a task that changed no file has failed"},
	{Name: "output", kind: kindBool, Default: true, Help: "keep what each attempt printed, rendered and redacted"},
	{Name: "transcript", kind: kindBool, Default: false, Help: "keep each attempt's prompt and raw output too, not only of failed ones"},
	{Name: "redact", kind: kindBool, Default: true, Help: "hide credentials in what is kept; a project cannot set it", userOnly: true},
	{Name: "redact_patterns", kind: kindStrings, Default: []string(nil), Help: "regular expressions of what else is hidden; a project's add to the user's", adds: true},
	{Name: "failure_threshold", kind: kindInt, Default: 3, Help: "attempts at a task before it has failed"},
	{Name: "max_iterations", kind: kindInt, Default: 100, Help: "starts of the command in one run"},
	{Name: "unattended", kind: kindBool, Default: false, Help: "never ask: failed tasks are left, the rest goes on"},
	{Name: "agent", kind: kindString, Default: "", Help: "the agent that works, by name; none for a command that is not looked into"},
	{Name: "agents", kind: kindObject, Default: json.RawMessage(nil), Help: "recipes of other agents, by name", userOnly: true},
	{Name: "fallback", kind: kindStrings, Default: []string(nil), Help: "agents that work while the ones before them are limited"},
	{Name: "command", kind: kindStrings, Default: []string(nil), Help: "command line of the agent, when none is typed"},
	{Name: "on_event", kind: kindString, Default: "", Help: "shell command that gets each event of a run as JSON on stdin"},
	{Name: "max_cost", kind: kindNumber, Default: 0.0, Help: "USD that one run may cost"},
	{Name: "max_tokens", kind: kindInt, Default: 0, Help: "tokens that one run may use, cached ones not counted"},
	{Name: "day_cost", kind: kindNumber, Default: 0.0, Help: "USD that all runs of a day may cost in this project"},
	{Name: "day_tokens", kind: kindInt, Default: 0, Help: "tokens that all runs of a day may use in this project"},
	{Name: "check", kind: kindString, Default: "", Help: "shell command that judges a task: exit 0 is done"},
	{Name: "unit", kind: kindString, Default: "leaf", Help: "what one start of the command works on", oneOf: []string{"leaf", "task", "component"}},
	{Name: "timeout", kind: kindDuration, Default: time.Duration(0), Help: "end an attempt after this time"},
	{Name: "idle_timeout", kind: kindDuration, Default: time.Duration(0), Help: "end an attempt, or its check, after this time without output; unattended 30m where it is not set"},
	{Name: "wait", kind: kindDuration, Default: 6 * time.Hour, Help: "wait at most this long in all for the agent's limit"},
	{Name: "cache_bytes", kind: kindInt, Default: 64 << 20, Help: "bytes that cached outlines may take, in memory and again on the disk"},
	{Name: "assessment_ttl", kind: kindDuration, Default: 15 * time.Minute, Help: "how long the result of assess counts"},
	{Name: "requirements_dir", kind: kindString, Default: "docs/requirements", Help: "folder of the specifications, relative to the project", inside: true},
	{Name: "safe_directories", kind: kindStrings, Default: []string(nil), Help: "projects of other users that may be run", userOnly: true},
}

// Keys returns all settings.
func Keys() []Key { return append([]Key(nil), keys...) }

func find(name string) (Key, error) {
	for _, k := range keys {
		if k.Name == name {
			return k, nil
		}
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
		switch strings.ToLower(s) {
		case "true", "1", "yes", "on":
			return true, nil
		case "false", "0", "no", "off":
			return false, nil
		}
		return nil, k.bad(s, "true or false")
	case kindInt:
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return nil, k.bad(s, "a whole number from 0 on")
		}
		return n, nil
	case kindDuration:
		d, err := parseDuration(s)
		if err != nil || d < 0 {
			return nil, k.bad(s, "a duration such as 90s, 10m, 6h or 7d; 0 is off")
		}
		return d, nil
	}
	if k.kind == kindStrings {
		var all []string
		if err := json.Unmarshal([]byte(s), &all); err != nil {
			return nil, k.bad(s, `a list like ["one", "two"]`)
		}
		return all, nil
	}
	switch k.kind {
	case kindNumber:
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || !(n >= 0) || math.IsInf(n, 0) {
			return nil, k.bad(s, "a number from 0 on")
		}
		return n, nil
	case kindObject:
		return nil, fmt.Errorf("%s is an object: write it into config.json", k.Name)
	}
	if len(k.oneOf) > 0 {
		for _, v := range k.oneOf {
			if s == v {
				return s, nil
			}
		}
		return nil, k.bad(s, "one of "+strings.Join(k.oneOf, ", "))
	}
	if k.inside && !filepath.IsLocal(filepath.FromSlash(s)) {
		return nil, k.bad(s, "a folder within the project, relative to it")
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
			text, err := json.Marshal(x)
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
			return marshal(x)
		}
	case float64:
		if k.kind == kindNumber || k.kind == kindInt || k.kind == kindDuration && x == 0 {
			return k.parse(strconv.FormatFloat(x, 'f', -1, 64))
		}
	}
	return nil, k.bad(v, "a value of its own type")
}

func marshal(v any) (json.RawMessage, error) { return json.Marshal(v) }

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
