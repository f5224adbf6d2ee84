package lifecycle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

const gitignore = ".gitignore"

// IgnoreInProject adds .lopen/ to the project's own .gitignore, once and with the
// line ends that the file has, and takes the one inside .lopen away.
func (s *Store) IgnoreInProject() error {
	data, mode, err := s.projectIgnore()
	if err != nil {
		return fmt.Errorf("add %s to %s: %w", Dir, gitignore, err)
	}
	if !ignores(data) {
		end := "\n"
		if bytes.Contains(data, []byte("\r\n")) {
			end = "\r\n"
		}
		if len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(data, end...)
		}
		data = append(data, Dir+"/"+end...)
		if err := writer.ReplaceFile(s.project, gitignore, data, mode); err != nil {
			return fmt.Errorf("add %s to %s: %w", Dir, gitignore, err)
		}
	}
	if err := s.root().Remove(gitignore); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s/%s: %w", Dir, gitignore, err)
	}
	return nil
}

func (s *Store) projectIgnore() ([]byte, fs.FileMode, error) {
	data, err := writer.ReadFile(s.project, gitignore, 16<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o644, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := s.project.Lstat(gitignore)
	if err != nil {
		return nil, 0, err
	}
	return data, info.Mode().Perm(), nil
}

// ignores says whether a .gitignore names the store's folder.
func ignores(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		switch strings.TrimSpace(line) {
		case Dir, Dir + "/", "/" + Dir, "/" + Dir + "/":
			return true
		}
	}
	return false
}
