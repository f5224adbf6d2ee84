//go:build unix

package owner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
)

// nobody is another user than the tests'.
const nobody = 65534

// A folder is private if nobody else can write there, or put another one in its place.
func TestPrivate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		modes string // of top, home, state, and the folder, in octal; state is below home, home below top
		owner string // which of them is another user's
		why   string
	}{
		"as they are made":               {"755 755 755 700", "", ""},
		"closed":                         {"700 700 700 700", "", ""},
		"the folder is open":             {"755 755 755 702", "", "lopen may be written by others (drwx----w-)"},
		"the folder is open and sticky":  {"755 755 755 1777", "", "lopen may be written by others (dtrwxrwxrwx)"},
		"the folder is another user's":   {"755 755 755 755", "lopen", "lopen belongs to "},
		"one above is open":              {"755 755 777 700", "", "state may be written by others"},
		"one above is open and sticky":   {"755 755 1777 700", "", ""},
		"one above is another user's":    {"755 755 755 700", "state", "state belongs to "},
		"a sticky one is another user's": {"755 755 1777 700", "state", "state belongs to "},
		"home is open":                   {"755 777 755 700", "", "home may be written by others"},
		"what is above home is open":     {"777 755 755 700", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.owner != "" && os.Geteuid() != 0 {
				t.Skip("to give a folder to another user takes root")
			}
			top := t.TempDir()
			modes := strings.Fields(c.modes)
			dir := filepath.Join(top, "top", "home", "state", "lopen")
			require.NoError(t, os.MkdirAll(dir, 0o700))
			for i, at := 3, dir; i >= 0; i, at = i-1, filepath.Dir(at) {
				mode := os.FileMode(0)
				for _, digit := range modes[i][len(modes[i])-3:] {
					mode = mode<<3 | os.FileMode(digit-'0')
				}
				if len(modes[i]) == 4 {
					mode |= os.ModeSticky
				}
				require.NoError(t, os.Chmod(at, mode))
				if filepath.Base(at) == c.owner {
					require.NoError(t, os.Chown(at, nobody, nobody))
				}
			}
			home := filepath.Join(top, "top", "home")
			link := filepath.Join(top, "link")
			require.NoError(t, os.Symlink(dir, link))
			for _, path := range []string{dir, link} {
				err := owner.Private(path, home)
				if c.why == "" {
					require.NoError(t, err, path)
					require.NoError(t, owner.Private(filepath.Join(path, "not", "there"), home))
					continue
				}
				var exposed *owner.Error
				require.ErrorAs(t, err, &exposed, path)
				require.Contains(t, err.Error(), c.why, path)
			}
		})
	}
}

// A file that others could have written is not read, and is named with what ends that.
func TestReadFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	data, err := owner.ReadFile(path, 10)
	require.NoError(t, err)
	require.Equal(t, "text", string(data))
	require.NoError(t, os.Chmod(path, 0o602))
	_, err = owner.ReadFile(path, 10)
	var exposed *owner.Error
	require.ErrorAs(t, err, &exposed)
	require.Equal(t, []string{"chmod", "go-w", path}, exposed.Mend)
	require.NoError(t, os.Chmod(path, 0o600))
	_, err = owner.ReadFile(path+"-none", 10)
	require.ErrorIs(t, err, os.ErrNotExist)
	if os.Geteuid() != 0 {
		t.Skip("to give a file to another user takes root")
	}
	require.NoError(t, os.Chown(path, nobody, nobody))
	_, err = owner.ReadFile(path, 10)
	require.ErrorContains(t, err, path+" belongs to ")
	link := path + "-link"
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, os.Chown(path, 0, 0))
	require.NoError(t, owner.Alone(link))
	require.NoError(t, os.Lchown(link, nobody, nobody))
	require.ErrorContains(t, owner.Alone(link), link+" belongs to ")
}
