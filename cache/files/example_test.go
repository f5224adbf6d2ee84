package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// A tree is recorded, edited, and compared.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	write := func(name, content string) { _ = os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644) }
	write("a.go", "package a\n")
	write("b.go", "package b\n")
	write("c.go", "package c\n")
	write(".gitignore", "*.log\n")
	root, err := writer.OpenFS(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()

	before, err := files.Take(context.Background(), root, nil, files.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	write("a.go", "package a // edited\n")
	write("run.log", "...")
	_ = os.Rename(filepath.Join(dir, "b.go"), filepath.Join(dir, "d.go"))
	_ = os.Remove(filepath.Join(dir, "c.go"))

	// The snapshot survives a process, if its Memory does: what somebody else wrote is not believed.
	memory := files.Own()
	if err := files.Remember(root, ".lopen/files.bin", before, memory, "files.bin"); err != nil {
		fmt.Println(err)
		return
	}
	if before, _, err = files.Recall(root, ".lopen/files.bin", memory, "files.bin"); err != nil {
		fmt.Println(err)
		return
	}
	after, err := files.Take(context.Background(), root, before, files.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range files.Compare(before, after) {
		fmt.Println(c.Kind, c.From, c.Path)
	}
	// Each is told again, until there is a new base.
	fmt.Println(len(files.Compare(before.Refresh(after), after)))
	// Output:
	// modified  a.go
	// deleted  c.go
	// moved b.go d.go
	// 3
}
