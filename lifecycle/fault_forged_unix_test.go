//go:build unix

package lifecycle_test

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// FAULT 30: a manifest and a journal may come from anywhere, with right checksums. What
// they name outside is neither read nor written.
func TestFault30ForgedPaths(t *testing.T) {
	t.Parallel()
	model := memory(t)
	id := furnished(t, model)[0]
	folder := filepath.Join(".lopen", "sessions", id.String())
	for name, forge := range map[string]func(t *testing.T, project string){
		"manifest, ..":       forgedManifest(folder, "../outside/precious"),
		"manifest, absolute": forgedManifest(folder, "/precious"),
		"manifest, .git":     forgedManifest(folder, ".git/hooks/pre-commit"),
		"manifest, .lopen":   forgedManifest(folder, ".lopen/config.json"),
		"folder is a symlink": func(t *testing.T, project string) {
			require.NoError(t, os.Remove(filepath.Join(project, "a")))
			require.NoError(t, os.Symlink("../outside", filepath.Join(project, "a")))
			forgedManifest(folder, "a/precious")(t, project)
		},
		"stream": func(t *testing.T, project string) {
			all, err := filepath.Glob(filepath.Join(project, folder, "journal-*.jsonl"))
			require.NoError(t, err)
			forged := 0
			for _, file := range all {
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				lines := splitLines(data)
				for i, line := range lines {
					bad := strings.ReplaceAll(string(line), `"file":"messages`, `"file":"../../../../outside/messages`)
					if bad != string(line) {
						lines[i] = []byte(reseal(t, bad))
						forged++
					}
				}
				write(t, file, joinLines(lines))
			}
			require.NotZero(t, forged)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := memory(t)
			project, outside := filepath.Join(top, "project"), filepath.Join(top, "outside")
			copyTree(t, model, project)
			require.NoError(t, os.Mkdir(outside, 0o700))
			write(t, filepath.Join(outside, "precious"), "precious")
			for _, name := range []string{"messages.jsonl"} { // what a session has to tell would be read from here
				data, err := os.ReadFile(filepath.Join(project, folder, name))
				require.NoError(t, err)
				write(t, filepath.Join(outside, name), string(data))
			}
			require.NoError(t, os.MkdirAll(filepath.Join(project, ".git", "hooks"), 0o700))
			forge(t, project)
			if strings.HasPrefix(name, "manifest") {
				refusedManifest(t, project, id)
			}
			before, git := look(t, outside), look(t, filepath.Join(project, ".git"))
			for _, op := range everything(project, []session.ID{id, id}) {
				within(t, op.name, op.do)
				require.Equal(t, before, look(t, outside), "%s touched what is outside", op.name)
				require.Equal(t, git, look(t, filepath.Join(project, ".git")), "%s touched git's folder", op.name)
			}
		})
	}
}

// refusedManifest requires that the checkpoints are refused for the path in them.
func refusedManifest(t *testing.T, project string, id session.ID) {
	t.Helper()
	store, err := lifecycle.Open(project, lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	defer store.Close(t.Context())
	cps, err := store.Checkpoints(id)
	require.NoError(t, err)
	defer cps.Close()
	_, err = cps.Load(1)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	require.ErrorContains(t, err, "path")
}

// forgedManifest has every checkpoint of a session name another path for the file a.
func forgedManifest(folder, path string) func(t *testing.T, project string) {
	return func(t *testing.T, project string) {
		all, err := filepath.Glob(filepath.Join(project, folder, "checkpoints", "*", "manifest.json"))
		require.NoError(t, err)
		require.NotEmpty(t, all)
		for _, file := range all {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			body, _, found := strings.Cut(string(data), `,"sha256":"`)
			require.True(t, found)
			require.Contains(t, body, `"path":"a"`)
			body = strings.Replace(body, `"path":"a"`, `"path":"`+path+`"`, 1)
			snapshot := strings.Index(body, `,"files":{`) + len(`,"files":`)
			inner, _, found := strings.Cut(body[snapshot:], `,"checksum":"crc32c:`)
			require.True(t, found)
			body = body[:snapshot] + inner + fmt.Sprintf(`,"checksum":"crc32c:%08x"}`+"\n", crc32.Checksum([]byte(inner), crc32.MakeTable(crc32.Castagnoli)))
			write(t, file, fmt.Sprintf("%s,\"sha256\":\"%x\"}\n", body, sha256.Sum256([]byte(body))))
		}
	}
}
