package session

import (
	"reflect"
	"slices"
	"strings"
)

// The names of the known members of a task and of state.json. An unknown field must have
// none of these names, or the member would be there twice.
var (
	taskKeys  = append(keysOf[Task](), "children")
	stateKeys = slices.Concat([]string{"schemaVersion", "id", "module", "epoch", "seq", "progress", "tasks", "checksum"},
		keysOf[Mark](), keysOf[Header](), sumKeys())
)

// sumKeys returns the names of the sums in state.json, which has none of costs and
// durations.
func sumKeys() []string {
	all := keysOf[Totals]()
	return all[:slices.Index(all, "premiumRequests")]
}

// keysOf returns the names in the json tags of a struct.
func keysOf[T any]() (keys []string) {
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
