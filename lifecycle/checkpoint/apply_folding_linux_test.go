package checkpoint

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// TestRenameOfCaseOfTheKernel is TestRenameOfCase on file systems of the kernel that
// fold names.
func TestRenameOfCaseOfTheKernel(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a file system takes root")
	}
	for name, commands := range map[string][]string{
		"ext4": {"mkfs.ext4 -q -F -O casefold -E encoding=utf8 IMAGE", "mount -o loop IMAGE DIR", "mkdir DIR/in", "chattr +F DIR/in"},
		"vfat": {"mkfs.vfat IMAGE", "mount -o loop,quiet,umask=022 IMAGE DIR", "mkdir DIR/in"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
			require.NoError(t, os.WriteFile(image, nil, 0o600))
			require.NoError(t, os.Truncate(image, 64<<20))
			for _, command := range commands {
				args := strings.Fields(strings.NewReplacer("IMAGE", image, "DIR", dir).Replace(command))
				out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
				if err != nil {
					t.Skipf("no %s that folds names can be mounted here: %s: %v: %s", name, command, err, out)
				}
				if args[0] == "mount" {
					t.Cleanup(func() { require.NoError(t, exec.Command("umount", dir).Run()) })
				}
			}
			tree, err := writer.OpenFS(filepath.Join(dir, "in"))
			require.NoError(t, err)
			defer tree.Close()
			requireRenames(t, tree, name != "vfat")
		})
	}
}
