package workload

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

var words = []string{"the", "handler", "returns", "an", "error", "when", "token", "has", "expired", "so", "test", "waits", "for", "session", "and", "retries", "it", "once"}

// Text is a message of a number of bytes, the n-th of its size.
func Text(size, n int) string {
	rng := rand.New(rand.NewPCG(Seed, uint64(size)<<32|uint64(n)))
	var b bytes.Buffer
	for b.Len() < size {
		b.WriteString(words[rng.IntN(len(words))])
		b.WriteByte(' ')
	}
	return string(b.Bytes()[:size])
}

// Specification is a Markdown file of n sections with text, lists and code.
func Specification(n int) []byte {
	var b bytes.Buffer
	b.WriteString("# Specification\n\n")
	for i := range n {
		fmt.Fprintf(&b, "## Part %d\n\n%s\n\n- one\n- two `code`\n\n```go\n# no heading\n```\n\n### Detail %d\n\n%s\n\n", i, Text(400, i), i, Text(200, i))
	}
	return b.Bytes()
}

// Tree makes n files in folders up to five deep, as repositories have them, and a
// .gitignore at the top. It returns the names of all, sorted.
func Tree(top string, n int) (names []string, err error) {
	rng := rand.New(rand.NewPCG(Seed, 0))
	dirs := []string{"."}
	for i := range n {
		if i%12 == 0 {
			dir := filepath.Join(dirs[rng.IntN(min(len(dirs), 80))], fmt.Sprintf("package%d", i))
			if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
				return nil, err
			}
			dirs = append(dirs, dir)
		}
		content := make([]byte, 100+rng.IntN(8000))
		for j := range content {
			content[j] = byte(rng.Uint32())
		}
		names = append(names, filepath.Join(top, dirs[rng.IntN(len(dirs))], fmt.Sprintf("file%d.go", i)))
		if err := os.WriteFile(names[i], content, 0o644); err != nil {
			return nil, err
		}
	}
	ignore := filepath.Join(top, ".gitignore")
	names = append(names, ignore)
	slices.Sort(names)
	return names, os.WriteFile(ignore, []byte("*.o\n*.log\n/build/\nnode_modules/\n!keep.log\n"), 0o644)
}
