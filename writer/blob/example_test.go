package blob_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A content is stored, named by a manifest, read back, and swept when no
// manifest names it any more.
func Example() {
	path, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(path)
	dir, err := writer.OpenFS(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dir.Close()
	s := blob.New(dir)

	hold, err := s.Hold(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	batch := hold.Batch()
	hash, size, err := batch.Put(strings.NewReader("hello\n"), blob.Hash{})
	fmt.Println(size, err)
	fmt.Println(batch.Commit())
	// Here the manifest that names the hash is made durable.
	fmt.Println(hold.Release())

	r, err := s.Open(hash)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	data, err := io.ReadAll(r) // the error would report damage
	fmt.Printf("%q %v\n", data, err)

	swept, err := s.Sweep(func() (map[blob.Hash]struct{}, error) { return nil, nil })
	fmt.Println(len(swept.Hashes), swept.Bytes, err)
	fmt.Println(s.Has(hash))
	// Output:
	// 6 <nil>
	// <nil>
	// <nil>
	// "hello\n" <nil>
	// 1 62 <nil>
	// false <nil>
}
