package checkpoint

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// TestBackFromAnywhere kills random rewinds at each call, and takes them back, with a kill in
// between as well. The tree is just what it was before.
func TestBackFromAnywhere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*rewinds) {
		g := garden{Rand: rand.New(rand.NewPCG(seed, 3))}
		from := g.grow()
		to := g.edited(from)
		umask := []fs.FileMode{0o022, 0o777, 0, 0o277}[seed%4]
		blobs := stored(t, from, to)
		plan := planOf(t, blobs, from, to)
		killed := func(n, again int) (calls int) {
			dir, err := os.MkdirTemp(t.TempDir(), "")
			require.NoError(t, err)
			tree, err := writer.OpenFS(dir)
			require.NoError(t, err)
			defer func() {
				seen(t, unlocked{tree})
				require.NoError(t, tree.Close())
				require.NoError(t, os.RemoveAll(dir))
			}()
			from.lay(t, try(tree, blobs))
			msg := fmt.Sprintf("seed %d, umask %o, killed at %d and %d", seed, umask, n, again)
			for i, left := range []int{n, again} {
				s, p := try(tree, blobs), plan
				s.left, s.umask = left, umask
				if i == 1 {
					p = plan.Back()
				}
				if _, err := s.Apply(tContext(), p); err != nil {
					require.ErrorIs(t, err, errKilled, msg)
				}
				calls = max(calls, s.calls)
			}
			s := try(tree, blobs)
			s.umask = umask
			finish(t, s, plan.Back(), from, msg)
			stand := s.Stand(tContext(), plan)
			require.Len(t, stand.Left, len(plan.Changes), msg)
			return calls
		}
		calls := killed(-1, -1)
		for n := range calls {
			killed(n, g.IntN(calls))
		}
	}
}

// A rewind that is taken back leaves what somebody changed meanwhile, and says so.
func TestBackLeavesWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	from, to := made("a", "two", "b", "two", "gone", "two", "mode", "one", "z", "two"), made("a", "one", "b", "one", "new", "one", "mode", "one", "z", "one").with(map[string]fs.FileMode{"mode": 0o755})
	blobs, tree := stored(t, from, to), onDisk(t, from)
	plan := planOf(t, blobs, from, to)
	s := try(tree, blobs)
	s.before = func(call, name string) error {
		if call == "rename" && name == "z" {
			return syscall.EXDEV
		}
		return nil
	}
	_, err := s.Apply(tContext(), plan)
	require.ErrorIs(t, err, syscall.EXDEV)
	require.NotErrorIs(t, err, ErrUnchanged)
	for _, name := range []string{"a", "new"} {
		require.NoError(t, os.WriteFile(filepath.Join(tree.Name(), name), []byte("mine"), 0o600))
	}
	require.Equal(t, Stand{Changed: []string{"b"}, Left: []string{"gone", "mode", "z"}, Other: []string{"a", "new"}}, try(tree, blobs).Stand(tContext(), plan))
	done, err := try(tree, blobs).Apply(tContext(), plan.Back())
	require.NoError(t, err)
	require.Equal(t, []Retained{{Path: "a", Why: Meanwhile}, {Path: "new", Why: Meanwhile}}, done.Retained)
	want := from.with(nil)
	want["a"], want["new"] = thing{0o644, "mine"}, thing{0o644, "mine"}
	requireThings(t, want, seen(t, tree), "taken back")
}

// TestErrorAtAnyCall has each call of a rewind fail that changes a name or a mode, in the way in
// which mounts and files in use fail. A plan that tolerates that retains the path and goes on;
// another one can be taken back.
func TestErrorAtAnyCall(t *testing.T) {
	t.Parallel()
	from, to := made("a", "two", "d/", "", "d/gone", "two", "mode", "one", "swap", "two"), made("a", "one", "e/", "", "e/new", "one", "mode", "one", "swap/", "", "swap/in", "one").with(map[string]fs.FileMode{"mode": 0o755})
	blobs := stored(t, from, to)
	plan := planOf(t, blobs, from, to)
	for k := 1; ; k++ {
		met := false
		for _, permitted := range []bool{false, true} {
			tree := onDisk(t, from)
			p, n, s := *plan, 0, try(tree, blobs)
			p.Permitted = permitted
			s.before = func(call, name string) error {
				if n++; n == k {
					met = true
					return []error{syscall.EBUSY, syscall.EXDEV, syscall.ETXTBSY, syscall.ENOTSUP}[k%4]
				}
				return nil
			}
			done, err := s.Apply(tContext(), &p)
			if permitted {
				require.NoError(t, err, "call %d", k)
				require.Equal(t, len(plan.Changes), done.Changes+len(done.Retained))
				for _, r := range done.Retained {
					require.Equal(t, Denied, r.Why)
				}
			} else if err != nil {
				_, err = try(tree, blobs).Apply(tContext(), plan.Back())
				require.NoError(t, err, "call %d", k)
				requireThings(t, from, seen(t, tree), "call %d", k)
			}
		}
		if !met {
			require.Greater(t, k, 10)
			return
		}
	}
}
