package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Look says whether a command can be started at all: found, executable, and no
// folder. Its error wraps ErrNotStarted.
func Look(argv []string, dir string, env []string) error {
	_, err := lookPath(argv, dir, env)
	return err
}

// lookPath finds the executable as a shell in dir with env would.
func lookPath(argv []string, dir string, env []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", fmt.Errorf("%w: it is empty", ErrNotStarted)
	}
	name := argv[0]
	if filepath.Base(name) != name {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrNotStarted, name, err)
		}
		return path, nil
	}
	search := os.Getenv("PATH")
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	var first error
	for _, d := range filepath.SplitList(search) {
		if d == "" {
			d = "."
		}
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		err := executable(filepath.Join(d, name))
		if err == nil {
			return filepath.Join(d, name), nil
		}
		if first == nil && !errors.Is(err, os.ErrNotExist) {
			first = err
		}
	}
	if first == nil {
		first = errors.New("not found in PATH")
	}
	return "", fmt.Errorf("%w: %s: %w", ErrNotStarted, name, first)
}
