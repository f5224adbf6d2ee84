package trie

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestAgainstMap drives a trie and a plain map through the same random edits,
// with a hash that makes many keys collide, fully or in their first bits.
func TestAgainstMap(t *testing.T) {
	good := hash
	t.Cleanup(func() { hash = good })
	hashes := map[string]func(string) uint64{
		"good": good,
		"weak": func(k string) uint64 { return uint64(len(k) % 3) },
		"deep": func(k string) uint64 { return good(k) << 58 },
	}
	for name, h := range hashes {
		t.Run(name, func(t *testing.T) {
			hash = h
			rapid.Check(t, func(t *rapid.T) {
				model := map[string]int{}
				var m Map[int]
				for range rapid.IntRange(1, 6).Draw(t, "edits") {
					before, old := m, maps.Clone(model)
					e := m.Edit()
					for range rapid.IntRange(0, 30).Draw(t, "steps") {
						k := fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "key"))
						if rapid.Bool().Draw(t, "put") {
							v := rapid.Int().Draw(t, "value")
							e.Put(k, v)
							model[k] = v
						} else {
							e.Delete(k)
							delete(model, k)
						}
					}
					m = e.Map()
					e.Put("after the seal", 1)
					same(t, model, m)
					same(t, old, before)
					checkDiff(t, old, model, before, m)
				}
			})
		})
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
}

// checkDiff applies what Diff reports to the old model and must get the new one.
func checkDiff(t *rapid.T, old, want map[string]int, from, to Map[int]) {
	got := maps.Clone(old)
	Diff(from, to, func(k string, a, b *int) bool {
		if a != nil && old[k] != *a {
			t.Fatalf("diff of %s begins at %d, not %d", k, *a, old[k])
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
	calls := 0
	Diff(m, e.Map(), func(k string, a, b *int) bool {
		calls++
		require.Equal(t, "77", k)
		require.Equal(t, 77, *a)
		require.Equal(t, -1, *b)
		return true
	})
	require.Equal(t, 1, calls)
	Diff(m, Map[int]{}, func(string, *int, *int) bool { calls++; return false })
	require.Equal(t, 2, calls, "fn can end the walk")
}

func BenchmarkPut(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		e := Map[int]{}.Edit()
		for i := range n {
			e.Put(fmt.Sprint(i), i)
		}
		m := e.Map()
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for i := range b.N {
				e := m.Edit()
				e.Put("7", i)
				e.Map()
			}
		})
	}
}
