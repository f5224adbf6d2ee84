//go:build unix

package owner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A group is a user's own where nobody else is in it, by either file.
func TestOnlyMember(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	groups, users := filepath.Join(dir, "group"), filepath.Join(dir, "passwd")
	require.NoError(t, os.WriteFile(groups, []byte("root:x:0:\nann:x:1000:\nbob:x:1001:bob,root\ncid:x:1002:cid,ann\ndev:x:100:\n"), 0o600))
	require.NoError(t, os.WriteFile(users, []byte("root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\ncid:x:1002:1002::/:/bin/sh\neve:x:1003:100::/:/bin/sh\nfay:x:1004:100::/:/bin/sh\n"), 0o600))
	for name, c := range map[string]struct {
		user, uid, gid string
		mine, listed   bool
	}{
		"nobody is listed":           {"ann", "1000", "1000", true, true},
		"the user and root are":      {"bob", "1001", "1001", true, true},
		"another user is":            {"cid", "1002", "1002", false, true},
		"another user's first group": {"eve", "1003", "100", false, true},
		"root's, of a user unknown":  {"", "100066", "0", true, true},
		"not in the files":           {"gus", "2000", "2000", true, false},
	} {
		mine, listed := onlyMember(groups, users, c.user, c.uid, c.gid)
		require.Equal(t, c.mine, mine, name)
		require.Equal(t, c.listed, listed, name)
	}
}
