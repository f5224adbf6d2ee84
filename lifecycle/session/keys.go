package session

import (
	"reflect"
	"slices"
	"strings"
)

// The names that members have in state.json and in its tasks. A field that is kept
// without being understood has none of them: it would stand twice.
var (
	taskKeys  = append(keysOf[Task](), "children")
	stateKeys = slices.Concat([]string{"schemaVersion", "id", "module", "epoch", "seq", "progress", "tasks", "checksum"},
		keysOf[Mark](), keysOf[Header](), sumKeys())
)

// sumKeys are the sums that state.json has: those without costs and durations.
func sumKeys() []string {
	all := keysOf[Totals]()
	return all[:slices.Index(all, "premiumRequests")]
}

// keysOf are the names in the json tags of a struct.
func keysOf[T any]() (keys []string) {
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
