package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

var updateCorpus = flag.Bool("update-corpus", false, "record anew what TestCorpus compares with")

// corpus is a session, or the module of its plan, of each folder in testdata/corpus.
var corpus = map[string]struct{ session, module string }{
	"done":     {"tally-20261122-1", "tally"},  // six tasks, one of which failed once
	"crashed":  {"tally-20261122-1", "tally"},  // lopen got a SIGKILL in the third task
	"forked":   {"tally-20261122-2", "tally"},  // a fork, a name, a pin, a rewind, the trash
	"damaged":  {"tally-20261122-1", "tally"},  // a byte of an old record differs, and a recovered session
	"excluded": {"tally-20261122-2", "tally"},  // in corrupted/, and recovered in part
	"edited":   {"tally-20261122-1", "tally"},  // state.json was edited by hand
	"long":     {"todo-20261122-1", "todo"},    // two runs, a cursor, a snapshot of each iteration
	"chat":     {"dropped-20261122-1", "talk"}, // compressed and dropped segments, messages, a fork with its parent's log
}

// TestCorpus reads .lopen folders that an earlier build of the command wrote, and prints
// what that build printed of them. Reading changes none of their files.
//
// The folders were not made by this code: a format that changes makes this test fail. To
// record what is printed anew: go test ./cmd/lopen -run TestCorpus -update-corpus, and
// read the difference.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for name, of := range corpus {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			unpack(t, filepath.Join("testdata", "corpus", name+".tar.zst"), top)
			project := filepath.Join(top, name)
			before := filesBelow(t, project)
			var got bytes.Buffer
			for _, args := range [][]string{
				{"session", "list", "--json"},
				{"session", "show", of.session, "--json"},
				{"session", "show", of.session, "--json", "--at", "12"},
				{"session", "show", of.session, "--format", "md"},
				{"session", "log", of.session, "--json"},
				{"session", "output"},
				{"session", "restore"},
				{"session", "verify"},
				{"session", "verify", "--json"},
				{"checkpoint", "list", "--json"},
				{"checkpoint", "show", "last"},
				{"plan", "show", of.module, "--json"},
				{"config", "show", "--fields", "key,value"},
				{"report", of.session},
			} {
				cmd := exec.Command(os.Args[0], args...)
				cmd.Dir = project
				cmd.Env = append(os.Environ(), asCommand, "TZ=UTC", "HOME="+filepath.Join(top, "home"),
					"XDG_STATE_HOME="+filepath.Join(top, "state"), "XDG_CONFIG_HOME="+filepath.Join(top, "config"))
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				fmt.Fprintf(&got, "$ lopen %s\n%s%s", strings.Join(args, " "), printed(out, top), printed(stderr.Bytes(), top))
				fmt.Fprintf(&got, "exit %d\n", cmd.ProcessState.ExitCode())
			}
			require.Equal(t, before, filesBelow(t, project), "reading changed a file")
			golden := filepath.Join("testdata", "corpus", name+".golden")
			if *updateCorpus {
				require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got.String())
		})
	}
}

// printed is output without the place of the test; of what is long its hash, and its begin.
func printed(out []byte, top string) string {
	s := strings.ReplaceAll(string(out), top, "$TOP")
	if len(s) <= 16<<10 {
		return s
	}
	return fmt.Sprintf("%s...\n%d bytes, SHA-256 %x\n", s[:1<<10], len(s), sha256.Sum256([]byte(s)))
}

// unpack writes what the archive has into dir, modification times included.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	folders := map[string]time.Time{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			require.NoError(t, os.MkdirAll(name, 0o700))
			folders[name] = h.ModTime
			continue
		case tar.TypeSymlink:
			require.NoError(t, os.Symlink(h.Linkname, name))
			continue
		case tar.TypeLink:
			require.NoError(t, os.Link(filepath.Join(dir, filepath.FromSlash(h.Linkname)), name))
			continue
		}
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, data, fs.FileMode(h.Mode).Perm()))
		require.NoError(t, os.Chtimes(name, h.ModTime, h.ModTime))
	}
	for name, at := range folders {
		require.NoError(t, os.Chtimes(name, at, at))
	}
}

// filesBelow has the hash of each file below dir.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		all[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	}))
	return all
}
