package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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

// rows has the mutants, each in a section of a txtar file that has its name.
//
//go:embed rows/*.txtar
var rows embed.FS

// row matches a mutant: its file, the package and the test, what is replaced and by what.
var row = regexp.MustCompile(`^(\S+)\n(\S+) (\S+)\n((?:-.*\n)+)((?:\+.*\n)*)$`)

// load returns the mutants of the files in the folder rows of fsys.
func load(fsys fs.FS) (all []mutant, err error) {
	names, err := fs.Glob(fsys, "rows/*.txtar")
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		for _, section := range txtar.Parse(data).Files {
			is := row.FindStringSubmatch(string(section.Data))
			if is == nil {
				return nil, fmt.Errorf("%s: %q is not a file, a package and a test, lines with - and lines with +", name, section.Name)
			}
			all = append(all, mutant{section.Name, is[1], unsigned(is[4], "-"), unsigned(is[5], "+"), is[2], is[3]})
		}
	}
	return all, err
}

// unsigned returns lines without the sign at the begin of each.
func unsigned(lines, sign string) string {
	return strings.TrimSuffix(strings.ReplaceAll("\n"+lines, "\n"+sign, "\n")[1:], "\n")
}

// changed is the content of the mutant's file below root with the mutant in it.
func (m mutant) changed(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if n := strings.Count(string(source), m.from); err == nil && n != 1 {
		return "", fmt.Errorf("%s holds what is to be replaced %d times instead of once", m.file, n)
	}
	return strings.Replace(string(source), m.from, m.to, 1), err
}
