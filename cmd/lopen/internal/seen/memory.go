package seen

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

const (
	// folder is that of the notes in the user's state folder. The tracker never looks into one of this
	// name, so that a note is no change where the user's home is the project.
	folder = "seen/" + lifecycle.Dir
	// maxNote bounds a note, in bytes.
	maxNote = 64 << 10
	// maxAge is how long a note stays that is not replaced.
	maxAge = 90 * 24 * time.Hour
)

// A Memory is that of one project. It is a [files.Memory].
type Memory struct {
	dir, project string
	log          zerolog.Logger
}

// Of returns the Memory of a project with this real path. state is the user's state folder, which
// need not exist.
func Of(state, project string, log zerolog.Logger) *Memory {
	return &Memory{dir: filepath.Join(state, filepath.FromSlash(folder)), project: project, log: log}
}

// A note is the content of a file.
type note struct {
	Folder   string `json:"folder"`   // the project's
	Snapshot string `json:"snapshot"` // its path below .lopen
	SHA256   string `json:"sha256"`
}

func (m *Memory) of(key string, sum [sha256.Size]byte) note {
	return note{m.project, key, hex.EncodeToString(sum[:])}
}

func (m *Memory) path(key string) string {
	return filepath.Join(m.dir, fmt.Sprintf("%x.json", sha256.Sum256([]byte(m.project+"\x00"+key))))
}

// Note replaces the SHA-256 of a snapshot.
func (m *Memory) Note(key string, sum [sha256.Size]byte) {
	if err := m.note(key, sum); err != nil {
		m.log.Info().Err(err).Str("snapshot", key).Msg("every file is read again the next time, because what was remembered cannot be verified")
	}
}

func (m *Memory) note(key string, sum [sha256.Size]byte) error {
	data, err := strictjson.MarshalLines(m.of(key, sum))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	path := m.path(key)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		m.clear()
	}
	return trust.Replace(path, append(data, '\n'))
}

// Noted reports whether sum is what was noted last.
func (m *Memory) Noted(key string, sum [sha256.Size]byte) bool {
	data, err := owner.ReadFile(m.path(key), maxNote)
	if err != nil {
		return false
	}
	var n note
	return strictjson.Unmarshal(data, &n) == nil && n == m.of(key, sum)
}

// clear removes the notes that nobody replaced for long. It is for a new one, so that there are not
// more and more of them.
func (m *Memory) clear() {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > maxAge {
			_ = os.Remove(filepath.Join(m.dir, e.Name())) // it costs a reading at most
		}
	}
}
