package checkpoint_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A project is brought back to a checkpoint: what the loop did since is undone.
func Example() {
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	open := func(name string) writer.FS {
		path := filepath.Join(top, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			log.Fatal(err)
		}
		dir, err := writer.OpenFS(path)
		if err != nil {
			log.Fatal(err)
		}
		return dir
	}
	s := checkpoint.New(open("checkpoints"), blob.New(open("blobs")), open("project"))
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(top, "project", "notes.txt"), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	ctx, meta := context.Background(), checkpoint.Meta{At: time.Now(), Reason: checkpoint.BeforeTask}

	write("as it was\n")
	before, err := s.Create(ctx, meta, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	write("as the loop left it\n")
	after, err := s.Create(ctx, meta, before, nil)
	if err != nil {
		log.Fatal(err)
	}

	plan := checkpoint.NewPlan(before.Files, after.Files, after.Files, false)
	for _, c := range plan.Changes {
		fmt.Println(c.Kind, c.Path)
		patch, err := s.Patch(c.Old, c.New)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(patch)
	}
	done, err := s.Apply(ctx, plan)
	fmt.Println(done.Changes, err)
	// Output:
	// overwrite notes.txt
	// --- a/notes.txt
	// +++ b/notes.txt
	// @@ -1 +1 @@
	// -as the loop left it
	// +as it was
	// 1 <nil>
}
