package files

import (
	"path"

	"github.com/lopen-dev/lopen/writer"
)

// Save writes a snapshot to a file, atomically, and makes its folder if need be.
func Save(dir writer.FS, name string, s *Snapshot) error {
	if err := writer.MkdirDurable(dir, path.Dir(name)); err != nil {
		return err
	}
	return writer.ReplaceFile(dir, name, s.Encode(), 0o600)
}

// Load reads what Save wrote. The error is an fs.ErrNotExist when there is none, and
// one of Decode's for what is damaged.
func Load(dir writer.FS, name string) (*Snapshot, error) {
	data, err := writer.ReadText(dir, name, MaxEncoded)
	if err != nil {
		return nil, err
	}
	return Decode(data)
}
