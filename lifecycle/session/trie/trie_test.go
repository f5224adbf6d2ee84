package trie

import (
	"flag"
	"fmt"
	"maps"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Every run has the same examples; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// withHashes runs a test with the real hash and with hashes that collide: one has three
// values, one sets six high bits, one two low bits. It sets a variable of the package,
// so these tests run one after another.
func withHashes(t *testing.T, test func(t *testing.T)) {
	good := hash
	t.Cleanup(func() { hash = good })
	for name, h := range map[string]func(string) uint64{
		"good": good,
		"weak": func(k string) uint64 { return uint64(len(k) % 3) },
		"high": func(k string) uint64 { return good(k) << 58 },
		"few":  func(k string) uint64 { return good(k) & 0x21 },
	} {
		t.Run(name, func(t *testing.T) {
			hash = h
			test(t)
		})
	}
}

// TestAgainstMap drives a trie and a plain map through the same random edits.
func TestAgainstMap(t *testing.T) {
	withHashes(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			model := map[string]int{}
			var m Map[int]
			for range rapid.IntRange(1, 6).Draw(t, "edits") {
				before, old := m, maps.Clone(model)
				e := m.Edit()
				for range rapid.IntRange(0, 30).Draw(t, "steps") {
					k := fmt.Sprint(rapid.IntRange(0, 120).Draw(t, "key"))
					if _, there := model[k]; rapid.Bool().Draw(t, "put") {
						v := rapid.Int().Draw(t, "value")
						if added := e.Put(k, v); added == there {
							t.Fatalf("put %s: added is %v", k, added)
						}
						model[k] = v
					} else {
						e.Delete(k)
						delete(model, k)
					}
				}
				same(t, model, e.Now())
				m = e.Map()
				e.Put("after the seal", 1)
				e.Delete("7")
				same(t, model, m)
				same(t, old, before)
				checkDiff(t, old, model, before, m)
			}
		})
	})
}

// TestBuilder compares what a Builder makes with the same entries put one by one.
func TestBuilder(t *testing.T) {
	withHashes(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			model := map[string]int{}
			var b Builder[int]
			e := Map[int]{}.Edit()
			for _, k := range rapid.SliceOfNDistinct(rapid.IntRange(0, 300), 0, 100, rapid.ID).Draw(t, "keys") {
				i, v := b.Add()
				*v = -1
				b.Key(i, fmt.Sprint(k))
				*b.At(b.Len() - 1) = k
				e.Put(fmt.Sprint(k), k)
				model[fmt.Sprint(k)] = k
			}
			if len(model) > 0 && rapid.Bool().Draw(t, "twice") {
				k := rapid.SampledFrom(slicesOf(model)).Draw(t, "key")
				i, _ := b.Add()
				b.Key(i, k)
				if _, twice, ok := b.Map(); ok || twice != k {
					t.Fatalf("%s was added twice, and Map says %q, %v", k, twice, ok)
				}
				return
			}
			m, twice, ok := b.Map()
			if !ok {
				t.Fatalf("%q is said to be there twice", twice)
			}
			same(t, model, m)
			shapes(t, m.root, e.Map().root)
			more := m.Edit()
			more.Put("more", 1)
			same(t, model, m)
			if b.Len() != 0 {
				t.Fatal("the builder is not empty")
			}
		})
	})
}

func slicesOf(m map[string]int) (keys []string) {
	for i := range 301 {
		if _, ok := m[fmt.Sprint(i)]; ok {
			keys = append(keys, fmt.Sprint(i))
		}
	}
	return keys
}

// shapes requires two nodes to have the same shape, as the nodes of equal maps have.
func shapes(t *rapid.T, a, b *node[int]) {
	if a == nil && b == nil {
		return
	}
	if a == nil || b == nil || a.inline != b.inline || a.branches != b.branches || len(a.entries) != len(b.entries) || len(a.kids) != len(b.kids) {
		t.Fatalf("the shapes differ: %+v, %+v", a, b)
	}
	for i := range a.kids {
		shapes(t, a.kids[i], b.kids[i])
	}
}

func same(t *rapid.T, want map[string]int, m Map[int]) {
	got := map[string]int{}
	for k, v := range m.All() {
		got[k] = *v
	}
	if !maps.Equal(want, got) || m.Len() != len(want) {
		t.Fatalf("the trie holds %v (%d), the model %v", got, m.Len(), want)
	}
	for k, v := range want {
		if p, ok := m.Get(k); !ok || *p != v {
			t.Fatalf("get %s: %v", k, p)
		}
	}
	if _, ok := m.Get("never put"); ok {
		t.Fatal("a key that was never put is found")
	}
	if len(want) == 0 && m.root != nil {
		t.Fatal("an empty map with a root")
	}
	canonical(t, m.root, true)
}

// canonical requires that no branch but the root has a single entry and no branches: the
// entry itself could stand in its place. This keeps a trie small.
func canonical(t *rapid.T, n *node[int], root bool) {
	if n == nil {
		return
	}
	if !root && len(n.entries)+len(n.kids) < 2 && len(n.kids) == 0 {
		t.Fatalf("a branch of %d entries", len(n.entries))
	}
	if n.branches != 0 && (n.inline&n.branches != 0 || bits.OnesCount32(n.branches) != len(n.kids) || bits.OnesCount32(n.inline) != len(n.entries)) {
		t.Fatalf("bits and slots differ: %+v", n)
	}
	for _, k := range n.kids {
		canonical(t, k, false)
	}
}

// checkDiff applies what Diff reports to the old model and must get the new one.
func checkDiff(t *rapid.T, old, want map[string]int, from, to Map[int]) {
	got := maps.Clone(old)
	seen := map[string]bool{}
	Diff(from, to, func(k string, a, b *int) bool {
		if seen[k] {
			t.Fatalf("%s is reported twice", k)
		}
		seen[k] = true
		if v, there := old[k]; there != (a != nil) || there && v != *a {
			t.Fatalf("the diff of %s begins at %v", k, a)
		}
		if b == nil {
			delete(got, k)
		} else {
			got[k] = *b
		}
		return true
	})
	if !maps.Equal(want, got) {
		t.Fatalf("the diff leads to %v, not %v", got, want)
	}
}

func TestDiffWalksOnlyWhatDiffers(t *testing.T) {
	e := Map[int]{}.Edit()
	for i := range 10_000 {
		e.Put(fmt.Sprint(i), i)
	}
	m := e.Map()
	e.Put("77", -1)
	next := e.Map()
	calls := 0
	Diff(m, next, func(k string, a, b *int) bool {
		calls++
		require.Equal(t, "77", k)
		require.Equal(t, 77, *a)
		require.Equal(t, -1, *b)
		return true
	})
	require.Equal(t, 1, calls)
	require.Less(t, testing.AllocsPerRun(10, func() { Diff(m, next, func(string, *int, *int) bool { return true }) }), 1.0)
	for _, pair := range [][2]Map[int]{{m, {}}, {{}, m}} {
		calls = 0
		Diff(pair[0], pair[1], func(string, *int, *int) bool { calls++; return false })
		require.Equal(t, 1, calls, "fn can end the walk")
	}
}

func TestAnEditCopiesAPathOnce(t *testing.T) {
	e := Map[int]{}.Edit()
	for i := range 10_000 {
		e.Put(fmt.Sprint(i), i)
	}
	m := e.Map()
	e = m.Edit()
	e.Put("77", -1)
	again := testing.AllocsPerRun(10, func() { e.Put("77", -2) })
	require.InDelta(t, 1, again, 0, "only the entry is new")
	require.Greater(t, testing.AllocsPerRun(10, func() { m.Edit().Put("77", -3) }), 3.0)
}

func BenchmarkPut(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		var all Builder[int]
		for i := range n {
			place, v := all.Add()
			*v = i
			all.Key(place, fmt.Sprint(i))
		}
		m, _, _ := all.Map()
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				e := m.Edit()
				e.Put("7", i)
				e.Map()
			}
		})
	}
}
