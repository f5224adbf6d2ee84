package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/backup"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crypt"
)

func hashOf(s string) [32]byte { return sha256.Sum256([]byte(s)) }

// identity returns the text of a new private key.
func identity(t *testing.T) string {
	t.Helper()
	_, text, err := crypt.NewKey()
	require.NoError(t, err)
	return string(text)
}

// eachFile calls fn with each file of a backup.
func eachFile(t *testing.T, dir string, fn func(path string, data []byte)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			fn(path, data)
		}
		return err
	}))
}

// encrypted is a backup with a secret, and the key of who made it.
func encrypted(t *testing.T) (f *backup.Folder, mine, secret string) {
	t.Helper()
	mine, secret = identity(t), noise(1, 3000)
	f = create(t, keyed(at(noon), mine))
	_, err := store(f, noon, []item{{"sessions/secret-name", secret}, {"", noise(2, 100_000)}})
	require.NoError(t, err)
	return f, mine, secret
}

// Nothing of what was backed up can be read without the key.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	f, _, secret := encrypted(t)
	files := 0
	eachFile(t, f.Path(), func(path string, data []byte) {
		name := filepath.Base(path)
		require.NotContains(t, string(data), "secret-name", path)
		require.NotContains(t, string(data), "/project\"", path)
		require.NotContains(t, string(data), secret[100:200], path)
		if name != ".lock" && name != "lopen-backup.json" {
			require.True(t, crypt.Encrypted(data), path)
			files++
		}
	})
	require.Greater(t, files, 3)

	for name, key := range map[string]string{"another key": identity(t), "a passphrase": passphrase} {
		_, err := backup.Open(f.Path(), keyed(at(noon), key))
		require.ErrorIs(t, err, writer.ErrInvalid, name)
		require.ErrorContains(t, err, "the key is another one", name)
	}
	_, err := backup.Open(f.Path(), at(noon))
	require.ErrorContains(t, err, "it is encrypted, and there is no key")
}

// Every file can be read with the key by the age command alone.
func TestAgeReadsABackup(t *testing.T) {
	t.Parallel()
	age, err := exec.LookPath("age")
	if err != nil {
		t.Skip("without the age command this is not compared: apt-get install age")
	}
	f, mine, _ := encrypted(t)
	dir := t.TempDir()
	user, own := filepath.Join(dir, "user"), filepath.Join(dir, "own")
	require.NoError(t, os.WriteFile(user, []byte(mine), 0o600))
	out, err := exec.Command(age, "-d", "-i", user, "-o", own, filepath.Join(f.Path(), "key.age")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	snapshot, err := exec.Command(age, "-d", "-i", own, filepath.Join(f.Path(), "snapshots", "00000001.json")).CombinedOutput()
	require.NoError(t, err, "%s", snapshot)
	require.Contains(t, string(snapshot), `"project":"/project"`)
}

// A backup cannot become encrypted later, and public keys alone make none.
func TestKeysThatDoNotFit(t *testing.T) {
	t.Parallel()
	plain := create(t, at(noon))
	_, err := backup.Create(plain.Path(), keyed(at(noon), identity(t)))
	require.ErrorContains(t, err, "it is not encrypted")

	public := keyed(at(noon), "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p")
	dir := filepath.Join(t.TempDir(), "backup")
	_, err = backup.Create(dir, public)
	require.ErrorContains(t, err, "not public keys alone")
	require.NoDirExists(t, dir)
	f, err := backup.Create(dir, keyed(at(noon), identity(t)))
	require.NoError(t, err)
	defer f.Close()
	require.NotEmpty(t, f.KeyID())

	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "key.age"), []byte("mine"), 0o600))
	_, err = backup.Create(foreign, at(noon))
	require.ErrorContains(t, err, "not empty")
	_, err = backup.Create(foreign, keyed(at(noon), passphrase))
	require.Error(t, err)
	data, err := os.ReadFile(filepath.Join(foreign, "key.age"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
}

// Every byte of every file matters: a flip is noticed by Verify or by opening, plain and
// encrypted, and reading never returns other contents.
func TestFlips(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]backup.Options{"plain": at(noon), "encrypted": keyed(at(noon), identity(t))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := create(t, o)
			items := []item{{"a", noise(1, 300)}, {"", noise(2, 66_000)}}
			_, err := store(f, noon, items)
			require.NoError(t, err)
			eachFile(t, f.Path(), func(path string, data []byte) {
				if filepath.Base(path) == ".lock" {
					return
				}
				step := 1 + len(data)/60
				if testing.Short() {
					step *= 4
				}
				for i := 0; i < len(data); i += step {
					bad := bytes.Clone(data)
					bad[i] ^= 0x20
					require.NoError(t, os.WriteFile(path, bad, 0o600))
					require.False(t, sound(t, f.Path(), o, items), "%s: byte %d", path, i)
				}
				require.NoError(t, os.WriteFile(path, data[:len(data)/2], 0o600))
				require.False(t, sound(t, f.Path(), o, items), "%s: half of it", path)
				require.NoError(t, os.WriteFile(path, data, 0o600))
			})
			require.True(t, sound(t, f.Path(), o, items))
		})
	}
}

// sound reports whether nothing complains about a backup.
func sound(t *testing.T, path string, o backup.Options, want []item) bool {
	f, err := backup.Open(path, o)
	if err != nil {
		return false
	}
	defer f.Close()
	reports, err := f.Verify(context.Background(), 0)
	whole := err == nil && len(reports) == 1 && len(reports[0].Damage) == 0
	got, err := read(f, 0)
	require.Equal(t, whole, err == nil, "reading and verifying agree: %v", err)
	if err == nil {
		require.Equal(t, want, got)
	}
	return whole
}

func TestLargeObjectsAreCompressed(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]backup.Options{"plain": at(noon), "encrypted": keyed(at(noon), identity(t))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := create(t, o)
			items := []item{{"", strings.Repeat("the same line again\n", 50_000)}, {"", noise(1, 200_000)}}
			_, err := store(f, noon, items)
			require.NoError(t, err)
			s, err := f.Source(1)
			require.NoError(t, err)
			usage, err := s.Contents().Usage()
			require.NoError(t, err)
			require.Less(t, usage, int64(300_000))
			got, err := read(f, 1)
			require.NoError(t, err)
			require.Equal(t, items, got)
		})
	}
}
