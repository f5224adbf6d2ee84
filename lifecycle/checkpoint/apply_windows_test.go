package checkpoint

import "testing"

// diskBytes is not looked for where files have no holes unless they are asked for.
func diskBytes(*testing.T, string) int64 { return 0 }
