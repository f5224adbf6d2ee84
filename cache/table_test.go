package cache_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache"
)

func TestTable(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"", "text\n", spec, "# A\n# A\n", "# /a\n## b/c\n", "#\n##\n###### [x](y) `z`\r\nÜ\n-"} {
		o := cache.NewOutline([]byte(src))
		again, err := cache.OutlineOf([]byte(src), o.AppendTable(nil))
		require.NoError(t, err, "%q", src)
		require.Equal(t, o, again, "%q", src)
	}
	table := cache.NewOutline([]byte(spec)).AppendTable(nil)
	for cut := range table {
		_, err := cache.OutlineOf([]byte(spec), table[:cut])
		require.Error(t, err, "cut at %d", cut)
	}
	_, err := cache.OutlineOf([]byte(spec), append(table, 0))
	require.Error(t, err)
	table = cache.NewOutline([]byte("# A\n")).AppendTable(nil)
	table[1] = 3
	_, err = cache.OutlineOf([]byte("# A\n"), table)
	require.Error(t, err, "the title is none of the sections")
	_, err = cache.OutlineOf([]byte(spec+"\n"), table)
	require.Error(t, err)
}

// Whatever a table says, what is made of it can be asked for anything.
func FuzzOutlineOf(f *testing.F) {
	f.Add([]byte(spec), cache.NewOutline([]byte(spec)).AppendTable(nil))
	f.Add([]byte("# A\n"), cache.NewOutline([]byte("# A\n")).AppendTable(nil))
	f.Fuzz(func(t *testing.T, src, table []byte) {
		o, err := cache.OutlineOf(src, table)
		if err != nil {
			return
		}
		for _, s := range o.Sections() {
			require.True(t, strings.Contains(string(src), o.Text(s)))
			_, _ = o.Find(s.Path)
			_, _ = o.Find("#" + s.Anchor)
		}
		o.Preamble()
	})
}
