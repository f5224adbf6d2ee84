package files

import "strings"

// never says of which names nothing is ever taken. git as well refuses them in any
// case, because there are file systems that do.
func never(name string) bool {
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, ".lopen")
}
