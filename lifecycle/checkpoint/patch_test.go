package checkpoint

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDiffAndPatch(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	large := strings.Repeat("x\n", MaxPatch/2+1)
	p.write("text", "one\ntwo\nthree\n", "binary", "\x00\x01", "large", large, "gone", "bye", "from", "a long enough content\n",
		"link", "-> text", "mode", "same\n", "dir/in", "x\n", "old empty/", "", "touched", "t\n", "odd\n\xff", "1\n")
	a := p.create(about("s", Manual, nil))
	p.remove("gone", "old empty", "dir", "link")
	require.NoError(t, os.Rename(p.path("from"), p.path("to")))
	require.NoError(t, os.Chmod(p.path("mode"), 0o755))
	p.write("text", "one\nTWO\nthree\n", "binary", "\x00\x02", "large", large+"y\n", "link", "-> mode", "new", "no end",
		"new empty/", "", "full/in", "y\n", "touched", "t\n", "odd\n\xff", "2\n")
	_, now, err := p.Look(context.Background(), about("s", Manual, a))
	require.NoError(t, err)
	for _, stored := range []bool{false, true} { // from the project, then from the blobs
		var names, texts []string
		sums := map[string]Lines{}
		diff, err := Diff(p.Tree(a.Root), now)
		require.NoError(t, err)
		for _, c := range diff {
			names = append(names, string(c.Kind)+" "+c.Path)
			text, err := p.Patch(c.Old, c.New)
			require.NoError(t, err)
			texts = append(texts, text)
			sums[c.Path], err = p.Lines(c.Old, c.New)
			require.NoError(t, err)
		}
		require.Equal(t, []string{"modified binary", "deleted dir/in", "created full/in", "deleted gone", "modified large", "modified link", "mode mode",
			"created new", "created new empty", "modified odd\n\xff", "deleted old empty", "modified text", "moved to"}, names)
		require.Equal(t, []string{
			"Binary files a/binary and b/binary differ\n",
			"deleted file mode 0644 a/dir/in\n--- a/dir/in\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
			"new file mode 0644 b/full/in\n--- /dev/null\n+++ b/full/in\n@@ -0,0 +1 @@\n+y\n",
			"deleted file mode 0644 a/gone\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n\\ No newline at end of file\n",
			"Large files a/large and b/large differ\n",
			"--- a/link\n+++ b/link\n@@ -1 +1 @@\n-text\n\\ No newline at end of file\n+mode\n\\ No newline at end of file\n",
			"old file mode 0644 a/mode\nnew file mode 0755 b/mode\n",
			"new file mode 0644 b/new\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+no end\n\\ No newline at end of file\n",
			"new folder mode 0755 b/new empty\n",
			"--- \"a/odd\\n\\xff\"\n+++ \"b/odd\\n\\xff\"\n@@ -1 +1 @@\n-1\n+2\n",
			"deleted folder mode 0755 a/old empty\n",
			"--- a/text\n+++ b/text\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
			"rename from from\nrename to to\n",
		}, texts)
		require.Equal(t, Lines{Added: 1, Deleted: 1}, sums["text"])
		require.Equal(t, Lines{Added: 1}, sums["new"])
		require.Equal(t, Lines{Deleted: 1}, sums["gone"])
		require.Equal(t, Lines{Binary: true}, sums["binary"])
		require.Equal(t, Lines{Binary: true}, sums["large"])
		require.Zero(t, sums["to"])
		if !stored {
			now = p.Tree(p.create(about("s", Manual, a)).Root)
			p.remove("text", "new", "odd\n\xff", "full", "large")
			f, _, err := now.Find("large") // what is not shown is not read
			require.NoError(t, err)
			require.NoError(t, os.Remove(p.dir+"/blobs/"+f.Hash.String()[:2]+"/"+f.Hash.String()[2:]))
		}
	}
	text, err := p.Patch(nil, nil)
	require.NoError(t, err)
	require.Empty(t, text)
}

// A file that was only looked at, not stored, and has changed since is not shown with its
// new content.
func TestPatchOfWhatChangedSince(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a", "one")
	_, now, err := p.Look(context.Background(), Meta{})
	require.NoError(t, err)
	f, _, err := now.Find("a")
	require.NoError(t, err)
	p.write("a", "ONE")
	_, err = p.Patch(nil, f)
	require.ErrorContains(t, err, "changed since")
	p.remove("a")
	_, err = p.Patch(nil, f)
	require.ErrorIs(t, err, os.ErrNotExist)
}
