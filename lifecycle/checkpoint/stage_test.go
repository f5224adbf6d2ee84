package checkpoint

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// many is a tree of more files than may be open at once.
func many() things {
	all := things{}
	for i := range 3*blob.MaxUnsynced + 7 {
		all[fmt.Sprintf("f%03d", i)] = thing{mode: 0o644, text: fmt.Sprintf("content %d", i)}
	}
	return all
}

// A rewind of many files syncs them in batches: so many are open at once, and all of them are durable when it
// returns.
func TestManyFilesAreDurableAndFewOpen(t *testing.T) {
	t.Parallel()
	f := newFieldOf(t, crashfs.Ext4, many())
	var mu sync.Mutex
	open, most := map[string]bool{}, 0
	f.SetHook(func(op crashfs.Op) crashfs.Fault {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(path.Base(op.Name), tempPrefix) {
			switch op.Call {
			case "create":
				open[op.Name] = true
				most = max(most, len(open))
			case "close":
				delete(open, op.Name)
			}
		}
		return crashfs.Fault{}
	})
	_, err := f.apply(t)
	require.NoError(t, err)
	f.SetHook(nil)
	require.Equal(t, blob.MaxUnsynced, most)
	for _, v := range f.Variants(nil, 0) {
		requireThings(t, many(), f.on(t, f.Crash(v)).seen(t), "%s", v.Name)
	}
}

// A content that has another size than the folder of the checkpoint says is damaged. Nothing is changed then.
func TestContentOfAnotherSize(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"small", large} {
		f := newFieldOf(t, crashfs.Ext4, things{"a": {mode: 0o644, text: text}, "b": {mode: fs.FileMode(0o644), text: "other"}})
		for i := range f.plan.Changes {
			if c := &f.plan.Changes[i]; c.Path == "a" {
				c.New.Size++
			}
		}
		_, err := f.apply(t)
		require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, fmt.Sprintf("it has %d bytes, and not %d", len(text), len(text)+1))
		requireThings(t, after, f.seen(t), "nothing is changed")
	}
}
