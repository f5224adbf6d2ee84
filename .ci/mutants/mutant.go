package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A mutant replaces a piece of a file, which must be there exactly once.
type mutant struct {
	what     string // the mechanism that is taken out
	file     string // relative to the module's root
	from, to string
	pkg      string // the package of the test, relative likewise
	test     string // that must notice; a subtest as go test prints it
}

// changed is the content of the mutant's file below root with the mutant in it.
func (m mutant) changed(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(source), m.from); n != 1 {
		return nil, fmt.Errorf("%s holds what is to be replaced %d times instead of once", m.file, n)
	}
	return []byte(strings.Replace(string(source), m.from, m.to, 1)), nil
}

// overlay writes the file for -overlay into dir and returns its path. root is absolute.
func (m mutant) overlay(root, dir string) (string, error) {
	source, err := m.changed(root)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(changed, source, 0o600); err != nil {
		return "", err
	}
	replace := map[string]string{filepath.Join(root, m.file): changed}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, data, 0o600)
}
