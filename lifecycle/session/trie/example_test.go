package trie_test

import (
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session/trie"
)

func ExampleDiff() {
	e := trie.Map[int]{}.Edit()
	e.Put("a", 1)
	e.Put("b", 2)
	before := e.Map()
	e.Put("b", 3)
	after := e.Map()
	trie.Diff(before, after, func(key string, from, to *int) bool {
		fmt.Println(key, *from, *to)
		return true
	})
	// Output: b 2 3
}
