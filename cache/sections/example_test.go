package sections_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/cache/sections"
)

func Example() {
	dir, err := os.MkdirTemp("", "docs")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "SPECIFICATION.md"), []byte("# Storage\n\n## Caching\n\nA hit costs one stat.\n"), 0o600)

	c := sections.Open(sections.Options{Docs: os.DirFS(dir), Root: dir})
	defer c.Close()
	outline, err := c.Outline("SPECIFICATION.md")
	if err != nil {
		panic(err)
	}
	s, err := outline.Find("caching")
	fmt.Printf("lines %d to %d: %v\n%s", s.FirstLine, s.LastLine, err, outline.Text(s))
	// Output:
	// lines 3 to 5: <nil>
	// ## Caching
	//
	// A hit costs one stat.
}
