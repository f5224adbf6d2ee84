package nearest_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/nearest"
)

func TestOf(t *testing.T) {
	t.Parallel()
	all := slices.Values([]string{"log-out", "add-login", "add-logon", "x"})
	require.Equal(t, []string{"add-login", "add-logon"}, nearest.Of("add-logn", all, 2))
	require.Equal(t, []string{"x"}, nearest.Of("y", all, 1))
	require.Empty(t, nearest.Of("y", slices.Values([]string{}), 3))
	require.Equal(t, []string{"mitten", "sitting"}, nearest.Of("kitten", slices.Values([]string{"smitten!!!", "sitting", "mitten"}), 2))
}
