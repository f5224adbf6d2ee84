package checkpoint

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// lost are the paths that LostMoves names, with a ! where something else is there.
func (k *worker) lost() (paths []string) {
	all, err := k.cps.LostMoves(context.Background(), k.lopen)
	require.NoError(k.t, err)
	for _, m := range all {
		if m.There {
			m.Path += "!"
		}
		require.Regexp(k.t, "^moved/[0-9a-f]{64}-"+m.Before.ID.String()[:16]+"-11$", m.Name)
		paths = append(paths, m.Path)
	}
	return paths
}

// What a rewind moved away is lost where it is gone or not as it was, unless it was moved back, or its
// entry was removed.
func TestLostMoves(t *testing.T) {
	t.Parallel()
	begin := func() (k *worker, before, left *Entry) {
		k = hiding(t, 0)
		before, _ = k.works(scaffold...)
		_, left = k.rewind(before, RewindOptions{})
		require.Empty(t, k.lost())
		return k, before, left
	}
	remove := func(k *worker) { require.NoError(k.t, k.lopen.RemoveAll(movedDir)) }

	k, before, left := begin()
	file := movedDir + "/" + k.moved()[0].name + "/b"
	require.NoError(t, writer.ReplaceFile(k.lopen, file, []byte("others"), 0o600))
	require.Equal(t, []string{"node_modules!"}, k.lost())
	remove(k)
	require.Equal(t, []string{"node_modules"}, k.lost())
	k.create(Manual, 0)
	k.create(BeforeRewind, before.Number)
	require.Empty(t, k.lost(), "a rewind that has not ended may have moved it back")
	k.create(Manual, 0)
	require.Equal(t, []string{"node_modules"}, k.lost(), "and it has not")
	k.forget(left.Number)
	require.Empty(t, k.lost(), "nothing needs it any more")

	k, before, left = begin()
	_, again := k.rewind(left, RewindOptions{})
	remove(k)
	require.Empty(t, k.lost(), "it was moved back")
	k.edit("node_modules", "-")
	require.Empty(t, k.lost(), "and a person removed it then")
	k.forget(again.Number, again.Number+1)
	require.Empty(t, k.lost(), "also where the entries of the undo are gone")
	_ = before

	k = hiding(t, 0)
	before, _ = k.works(append(scaffold, "node_modules/.lopen", "1")...)
	k.rewind(before, RewindOptions{})
	require.Empty(t, k.lost(), "it could not be moved and stands where it was")
	k.works("a", "1")
	require.Empty(t, k.lost())
}

// What another project moved away was never here; what this one does is.
func TestLostMovesOfAnImport(t *testing.T) {
	t.Parallel()
	k := hiding(t, 0)
	before, _ := k.works(scaffold...)
	k.rewind(before, RewindOptions{})
	lines, err := k.cps.Extract(func(*Entry) (bool, string, error) { return true, "", nil })
	require.NoError(t, err)

	here := newWorld(t).worker("s", k.last)
	here.cps = New(here.checkpoints, MainTree, blob.New(k.blobs), here.tree, Options{Lopen: here.lopen, Memory: here.memory, Alive: func(string) bool { return true }})
	here.cps.budget = k.cps.budget
	_, err = here.cps.Bring(t.Context(), lines, false)
	require.NoError(t, err)
	require.Empty(t, here.lost())
	mine, err := here.cps.Extract(func(*Entry) (bool, string, error) { return true, "", nil })
	require.NoError(t, err)
	require.Equal(t, string(lines), string(mine), "where it goes from here it is brought anew")
	before, _ = here.works(scaffold...)
	here.rewind(before, RewindOptions{})
	require.Empty(t, here.lost())
	require.NoError(t, here.lopen.RemoveAll(movedDir))
	require.Equal(t, []string{"node_modules"}, here.lost())
}
