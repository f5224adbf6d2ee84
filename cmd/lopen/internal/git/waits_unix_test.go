//go:build unix

package git

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGitThatDoesNotAnswer puts a FIFO where git reads a file of the work tree.
func TestGitThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	head := p.repository("a")
	p.write("a/sub/file", "")
	unreadable["fifo"](t, p.path("a/sub/.gitignore"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s, err := Look(ctx, p.path("a"), p.environ())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, State{Head: head, Branch: "main"}, s, "what files say stays")
	require.Equal(t, s, Head(t.Context(), p.path("a"), p.environ()))
}
