package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

// A mutant replaces a piece of a file, which must be there exactly once.
type mutant struct {
	what     string // the mechanism that is taken out
	file     string // relative to the module's root
	from, to string
	pkg      string // the package of the test, relative likewise
	test     string // that must notice; a subtest as go test prints it
}

// rows has the mutants: a section of a txtar file each, which names it. Its first line is
// the file, its second the package and the test; then the lines of from, each behind a
// "-", and those of to, each behind a "+".
//
//go:embed rows/*.txtar
var rows embed.FS

// load returns the mutants of the files in the folder rows of fsys.
func load(fsys fs.FS) (all []mutant, err error) {
	names, err := fs.Glob(fsys, "rows/*.txtar")
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		for _, section := range txtar.Parse(data).Files {
			m, err := row(section.Name, string(section.Data))
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, section.Name, err)
			}
			all = append(all, m)
		}
	}
	return all, err
}

func row(what, text string) (mutant, error) {
	m := mutant{what: what}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var from, to []string
	for i, line := range lines {
		switch {
		case i == 0:
			m.file = line
		case i == 1:
			m.pkg, m.test, _ = strings.Cut(line, " ")
		case strings.HasPrefix(line, "-") && to == nil:
			from = append(from, line[1:])
		case strings.HasPrefix(line, "+"):
			to = append(to, line[1:])
		default:
			return m, fmt.Errorf("%q is neither a line of what is replaced (-) nor, behind those, of what replaces it (+)", line)
		}
	}
	m.from, m.to = strings.Join(from, "\n"), strings.Join(to, "\n")
	if m.test == "" || m.from == "" {
		return m, fmt.Errorf("a row has a file, a package and a test, and what is replaced")
	}
	return m, nil
}

// changed is the content of the mutant's file below root with the mutant in it.
func (m mutant) changed(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.from); n != 1 {
		return "", fmt.Errorf("%s holds what is to be replaced %d times instead of once", m.file, n)
	}
	return strings.Replace(string(source), m.from, m.to, 1), nil
}
