package prompt

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Each file is read once, whatever the order and the spelling of the paths, and what
// no session would remember is left out.
func TestDriftedIsBounded(t *testing.T) {
	t.Parallel()
	var resources []session.Resource
	for i := range 10_000 {
		path := []string{"a.md", "b.md", "./a.md", "c.md"}[i%4]
		resources = append(resources, session.Resource{Kind: "specification", Path: path, Header: fmt.Sprint("H", i)})
	}
	var read []string
	drifted := Drifted(func(name string) (*cache.Outline, error) {
		read = append(read, name)
		return cache.NewOutline([]byte("# T\n")), nil
	}, resources)
	require.Equal(t, []string{"a.md", "b.md", "c.md"}, read)
	require.Len(t, drifted, maxResources)
	require.Equal(t, Drift{Path: "a.md", Header: "H9744", State: cache.Gone}, drifted[0])
	require.Equal(t, "H9744", resources[9744].Header, "what was given stays in its order")
}
