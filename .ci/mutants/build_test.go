package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// Every mutant compiles: one that does not says nothing about its test. Only the bodies of the
// functions in its own file are looked at, which takes a fifth of the time.
func TestMutantsCompile(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	mutants, err := load(rows)
	require.NoError(t, err)
	var folders []string
	compiled := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return filepath.Ext(m.file) != ".go" })
	for _, m := range compiled {
		if dir := "./" + filepath.Dir(m.file); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	all := list(t, root, folders)
	fset := token.NewFileSet()
	headers := map[string]*ast.File{} // files without bodies, by absolute path
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[path].Export)
	})
	for _, m := range compiled {
		full := filepath.Join(root, m.file)
		source, err := m.changed(root)
		require.NoError(t, err, m.what)
		changed, err := parser.ParseFile(fset, full, source, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", m.what, err)
			continue
		}
		files := []*ast.File{changed}
		pkg := all[filepath.Dir(full)]
		require.Contains(t, pkg.GoFiles, filepath.Base(full), "%s: it is not compiled here", m.what)
		for _, name := range pkg.GoFiles {
			path := filepath.Join(pkg.Dir, name)
			if path == full {
				continue
			}
			if headers[path] == nil {
				headers[path] = header(t, fset, path)
			}
			files = append(files, headers[path])
		}
		config := types.Config{Importer: imports, Error: func(err error) {
			if e := (types.Error{}); errors.As(err, &e) && fset.File(e.Pos).Name() == full {
				t.Errorf("%s: %v", m.what, err)
			}
		}}
		_, _ = config.Check(pkg.ImportPath, fset, files, nil) // Error was told
	}
}

// header parses a file and takes the bodies of its functions out.
func header(t *testing.T, fset *token.FileSet, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
	return file
}

// list returns the packages of folders and what they import, by import path and by folder.
func list(t *testing.T, root string, folders []string) map[string]listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, folders...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	all := map[string]listed{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		require.NoError(t, dec.Decode(&p))
		all[p.ImportPath], all[p.Dir] = p, p
	}
	return all
}
