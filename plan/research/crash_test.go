package research

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// A power cut at any moment of a Create leaves the index as it was or as it is to be, and
// an index names no document that is not there, whole.
func TestCreateEveryCut(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			d := crashfs.New(mode)
			one, err := create(d.FS(), Document{Topic: "One"}, nil)
			require.NoError(t, err)
			was := content(t, d.FS(), indexName)
			rng := rand.New(rand.NewPCG(1, 2))
			found := map[string]bool{}
			look := func(d *crashfs.Disk, moment string, done bool) {
				for _, v := range d.Variants(rng, 20) {
					dir := d.Crash(v).FS()
					index := content(t, dir, indexName)
					found[index] = true
					all, err := List(folder{dir}, ".")
					require.NoError(t, err)
					names := []string{}
					for _, doc := range all {
						require.NoError(t, doc.Err, "%s, %s", moment, v.Name)
						require.True(t, strings.HasSuffix(content(t, dir, doc.File), "## Relevance\n"), "%s, %s: %s is not whole", moment, v.Name, doc.File)
						names = append(names, doc.File)
					}
					require.Contains(t, names, one)
					if index != was {
						require.Equal(t, was[:strings.Index(was, closing)]+"- [Two](RESEARCH-two.md)\n"+closing+"\n", index, "%s, %s", moment, v.Name)
						require.Contains(t, names, "RESEARCH-two.md", "%s, %s", moment, v.Name)
					}
					require.True(t, !done || index != was, "%s: the index that was acknowledged is gone", v.Name)
				}
			}
			d.SetHook(func(op crashfs.Op) crashfs.Fault {
				if op.N > 0 {
					look(d.Snapshot(), fmt.Sprintf("before %s %s", op.Call, op.Name), false)
				}
				return crashfs.Fault{}
			})
			_, err = create(d.FS(), Document{Topic: "Two"}, nil)
			require.NoError(t, err)
			d.SetHook(nil)
			look(d, "after the last call", true)
			require.Len(t, found, 2)
		})
	}
}

func content(t *testing.T, dir writer.FS, name string) string {
	t.Helper()
	data, err := writer.ReadFile(dir, name, maxSize)
	require.NoError(t, err)
	return string(data)
}
