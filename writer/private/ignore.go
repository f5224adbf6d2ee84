package private

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// maxIgnore bounds a .gitignore that a person wrote, in bytes.
const maxIgnore = 16 << 20

// Ignored reports whether the .gitignore of a project names a folder of it.
func Ignored(project writer.FS, folder string) bool {
	data, _, err := readIgnore(project)
	return err == nil && names(data, folder)
}

// Ignore adds a folder to the .gitignore of its project, durably, once and with the line endings of that file, and
// then removes the .gitignore in the folder.
func Ignore(project writer.FS, folder string) error {
	data, mode, err := readIgnore(project)
	if err == nil && !names(data, folder) {
		err = writer.ReplaceFile(project, gitignore, withLine(data, folder+"/"), mode)
	}
	if err != nil {
		return fmt.Errorf("add %s to %s: %w", folder, gitignore, err)
	}
	if err := project.Remove(folder + "/" + gitignore); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s/%s: %w", folder, gitignore, err)
	}
	return nil
}

func withLine(data []byte, line string) []byte {
	end := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		end = "\r\n"
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		data = append(data, end...)
	}
	return append(data, line+end...)
}

// readIgnore returns the content and the mode of a project's .gitignore; of one that is missing, what it is to have.
func readIgnore(project writer.FS) ([]byte, fs.FileMode, error) {
	data, err := writer.ReadFile(project, gitignore, maxIgnore)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o644, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := project.Lstat(gitignore)
	if err != nil {
		return nil, 0, err
	}
	return data, info.Mode().Perm(), nil
}

// names reports whether a line of a .gitignore names a folder, and nothing else.
func names(data []byte, folder string) bool {
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); strings.TrimPrefix(strings.TrimSuffix(line, "/"), "/") == folder {
			return true
		}
	}
	return false
}
