package assess_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/cache/assess"
)

func Example() {
	dir, err := os.MkdirTemp("", "project")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n"), 0o600)
	_ = os.Mkdir(filepath.Join(dir, ".lopen"), 0o700)

	c := assess.Open(assess.Options{Store: filepath.Join(dir, ".lopen")})
	defer c.Close()
	look, err := assess.Files(dir, []string{"**/*.go"})
	if err != nil {
		panic(err)
	}
	for range 2 {
		r, hit, err := c.GetOrCompute(context.Background(), assess.Key{Name: "vet"}, assess.DefaultTTL, look,
			func(context.Context) ([]byte, error) { return []byte("ok"), nil })
		fmt.Println(string(r.Data), hit, err)
	}
	// Output:
	// ok false <nil>
	// ok true <nil>
}
