//go:build unix

package lifecycle_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// forgedNames are names of files in folders of their own, and what is made of them.
var forgedNames = map[string]string{"xx": "..", "xprecious": "/precious", "xgit": ".git", "xlopen": ".lopen", "xx-outside-precious": "../outside/precious"}

// FAULT 30: a tree and a journal may come from anywhere, with right checksums. What
// they name outside is neither read nor written.
func TestFault30ForgedPaths(t *testing.T) {
	t.Parallel()
	model := memory(t)
	for name := range forgedNames {
		require.NoError(t, os.Mkdir(filepath.Join(model, "in-"+name), 0o700))
		write(t, filepath.Join(model, "in-"+name, name), "forged")
	}
	require.NoError(t, os.Mkdir(filepath.Join(model, "link"), 0o700))
	write(t, filepath.Join(model, "link", "precious"), "forged")
	id := furnished(t, model)[0]
	all, err := filepath.Glob(filepath.Join(model, ".lopen", "sessions", "*", "inherited"))
	require.NoError(t, err)
	require.Len(t, all, 1)
	forked, err := session.ParseID(filepath.Base(filepath.Dir(all[0])))
	require.NoError(t, err)
	const inheritedLink = "what a fork inherited is a symlink"
	cases := map[string]func(t *testing.T, project string){
		"folder is a symlink": func(t *testing.T, project string) {
			require.NoError(t, os.RemoveAll(filepath.Join(project, "link")))
			require.NoError(t, os.Symlink("../outside", filepath.Join(project, "link")))
		},
		inheritedLink: func(t *testing.T, project string) {
			all, err := filepath.Glob(filepath.Join(project, ".lopen", "sessions", "*", "inherited"))
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.NoError(t, os.Rename(all[0], filepath.Join(project, "../outside/inherited")))
			require.NoError(t, os.Symlink("../../../../outside/inherited", all[0]))
		},
	}
	for was, is := range forgedNames {
		cases["tree, "+strings.ReplaceAll(is, "/", "!")] = func(t *testing.T, project string) { forgeTree(t, project, was, is) }
	}
	for name, forge := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := memory(t)
			project, outside := filepath.Join(top, "project"), filepath.Join(top, "outside")
			copyTree(t, model, project)
			require.NoError(t, os.Mkdir(outside, 0o700))
			write(t, filepath.Join(outside, "precious"), "precious")
			require.NoError(t, os.MkdirAll(filepath.Join(project, ".git", "hooks"), 0o700))
			forge(t, project)
			before, git := look(t, outside), look(t, filepath.Join(project, ".git"))
			id := id
			if name == inheritedLink {
				id = forked
			}
			for _, op := range everything(project, []session.ID{id, id}) {
				within(t, op.name, op.do)
				require.Equal(t, before, look(t, outside), "%s touched what is outside", op.name)
				require.Equal(t, git, look(t, filepath.Join(project, ".git")), "%s touched git's folder", op.name)
			}
		})
	}
}

// forgeTree has every checkpoint of a project name a file by another name of the same
// length, with the objects and the chain that this takes.
func forgeTree(t *testing.T, project, was, is string) {
	t.Helper()
	root, err := writer.OpenFS(filepath.Join(project, ".lopen", "blobs"))
	require.NoError(t, err)
	defer root.Close()
	store := blob.New(root)
	objects := map[blob.Hash][]byte{}
	for h, err := range store.All() {
		require.NoError(t, err)
		objects[h], err = store.Read(h, 1<<20)
		require.NoError(t, err)
	}
	hold, err := store.Hold(t.Context())
	require.NoError(t, err)
	batch := hold.Batch()
	file := filepath.Join(project, ".lopen", "checkpoints", "main.jsonl")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	chain := string(data)
	var replace func(old, by []byte)
	replace = func(old, by []byte) {
		for h, data := range objects {
			if !bytes.HasPrefix(data, []byte("tree ")) || !bytes.Contains(data, old) {
				continue
			}
			data = bytes.ReplaceAll(data, old, by)
			forged, _, err := batch.Put(bytes.NewReader(data), blob.Hash{})
			require.NoError(t, err)
			delete(objects, h)
			objects[forged] = data
			chain = strings.ReplaceAll(chain, h.String(), forged.String())
			replace(h[:], forged[:])
		}
	}
	replace(append([]byte{byte(len(was))}, was...), append([]byte{byte(len(is))}, is...))
	require.NoError(t, batch.Commit())
	require.NoError(t, hold.Release())
	require.NotEqual(t, string(data), chain)
	var sealed strings.Builder
	for line := range strings.Lines(chain) {
		body, _, found := strings.Cut(line, `,"checksum":"`)
		require.True(t, found)
		fmt.Fprintf(&sealed, "%s,\"checksum\":\"crc32c:%08x\"}\n", body, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)))
	}
	write(t, file, sealed.String())

	lifecycles, err := lifecycle.Open(project, lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	defer lifecycles.Close(t.Context())
	cps, err := lifecycles.Checkpoints(nil)
	require.NoError(t, err)
	defer cps.Close()
	e, err := cps.At(1)
	require.NoError(t, err)
	for _, err = range cps.Tree(e.Root).All() {
		if err != nil {
			break
		}
	}
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	require.ErrorContains(t, err, "is no name")
}
