package files

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/blob"
)

func TestCompareMoves(t *testing.T) {
	t.Parallel()
	one, two := blob.Hash{1}, blob.Hash{2}
	file := func(path string, hash blob.Hash, inode uint64, size int64) Fingerprint {
		return Fingerprint{Path: path, Mode: 0o644, Size: size, Hash: hash, Inode: inode}
	}
	for name, tt := range map[string]struct {
		old, next []Fingerprint
		want      []string
	}{
		"same content":       {[]Fingerprint{file("a", one, 0, 1)}, []Fingerprint{file("b", one, 0, 1)}, []string{"moved a b"}},
		"the inode chooses":  {[]Fingerprint{file("a", one, 1, 1), file("b", one, 2, 1)}, []Fingerprint{file("c", one, 2, 1)}, []string{"deleted  a", "moved b c"}},
		"two for two":        {[]Fingerprint{file("a", one, 1, 1), file("b", one, 2, 1)}, []Fingerprint{file("c", one, 3, 1), file("d", one, 1, 1)}, []string{"moved b c", "moved a d"}},
		"a copy":             {[]Fingerprint{file("a", one, 1, 1)}, []Fingerprint{file("a", one, 1, 1), file("b", one, 2, 1)}, []string{"created  b"}},
		"a number again":     {[]Fingerprint{file("a", one, 1, 1)}, []Fingerprint{file("b", two, 1, 1)}, []string{"deleted  a", "created  b"}},
		"empty files":        {[]Fingerprint{file("a", one, 1, 0)}, []Fingerprint{file("b", one, 2, 0)}, []string{"deleted  a", "created  b"}},
		"an empty one moved": {[]Fingerprint{file("a", one, 1, 0)}, []Fingerprint{file("b", one, 1, 0)}, []string{"moved a b"}},
		"a link like it":     {[]Fingerprint{{Path: "a", Mode: fs.ModeSymlink, Hash: one, Size: 1}}, []Fingerprint{file("b", one, 0, 1)}, []string{"deleted  a", "created  b"}},
		"a number of a link": {[]Fingerprint{{Path: "a", Mode: fs.ModeSymlink, Hash: one, Size: 1, Inode: 1}}, []Fingerprint{file("b", one, 1, 1)}, []string{"deleted  a", "created  b"}},
		"empty folders":      {[]Fingerprint{{Path: "a", Mode: fs.ModeDir}}, []Fingerprint{{Path: "b", Mode: fs.ModeDir}}, []string{"deleted  a", "created  b"}},
	} {
		var got []string
		for _, c := range Compare(&Snapshot{Files: tt.old}, &Snapshot{Files: tt.next}) {
			got = append(got, string(c.Kind)+" "+c.From+" "+c.Path)
		}
		require.Equal(t, tt.want, got, name)
	}
}
