package writer_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/lopen-dev/lopen/writer"
)

// A file is replaced as a whole; the error says which content it has.
func ExampleReplaceFile() {
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

	for _, name := range []string{"state.json", "missing/state.json"} {
		err := writer.ReplaceFile(dir, name, []byte(`{"phase":"planning"}`), 0o600)
		var e *writer.Error
		switch {
		case err == nil:
			fmt.Println("it survives a power cut")
		case errors.As(err, &e) && e.Outcome == writer.NotCommitted:
			fmt.Println("the old content stands:", errors.Is(err, os.ErrNotExist))
		}
	}
	data, err := writer.ReadFile(dir, "state.json", 1<<20)
	fmt.Println(string(data), err)
	// Output:
	// it survives a power cut
	// the old content stands: true
	// {"phase":"planning"} <nil>
}
