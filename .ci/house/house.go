package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/lopen-dev/lopen/"

// A house is the packages of the module, by folder.
type house map[string]*room

// A room is one package.
type room struct {
	files    []file
	tests    int             // lines of tests
	exported map[string]*use // package-level names
}

// A file is one source file that is no test.
type file struct {
	name  string
	lines int
}

// use is what is known of an exported name.
type use struct {
	named    bool            // another package's source, or an Example, names it
	mentions map[string]bool // exported names of its package that its declaration mentions
	enum     string          // of a constant: its type
}

func (r *room) lines() (n int) {
	for _, f := range r.files {
		n += f.lines
	}
	return n
}

func (r *room) median() int {
	if len(r.files) == 0 {
		return 0
	}
	all := slices.Clone(r.files)
	slices.SortFunc(all, func(a, b file) int { return a.lines - b.lines })
	return all[len(all)/2].lines
}

// read parses all Go files beneath a folder, but those of other modules and testdata.
func read(root string) (house, error) {
	h := house{}
	var sources []*ast.File
	var dirs []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, other := os.Stat(filepath.Join(name, "go.mod"))
			if d.Name() == "testdata" || rel == ".git" || rel != "." && other == nil {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name) //nolint:gosec // the tree is ours
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		r := h[dir]
		if r == nil {
			r = &room{exported: map[string]*use{}}
			h[dir] = r
		}
		n := bytes.Count(text, []byte("\n"))
		if strings.HasSuffix(name, "_test.go") {
			r.tests += n
			sources, dirs = append(sources, examples(f)), append(dirs, "")
			return nil
		}
		r.files = append(r.files, file{filepath.ToSlash(rel), n})
		r.declare(f)
		sources, dirs = append(sources, f), append(dirs, dir)
		return nil
	})
	for i, f := range sources {
		h.note(f, dirs[i])
	}
	return h, err
}

// examples is a test file without everything but its Examples.
func examples(f *ast.File) *ast.File {
	only := *f
	only.Decls = slices.DeleteFunc(slices.Clone(f.Decls), func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return !ok || !strings.HasPrefix(fn.Name.Name, "Example")
	})
	return &only
}

func (r *room) declare(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			owner := d.Name.Name
			if d.Recv != nil {
				owner = receiver(d.Recv.List[0].Type)
			}
			if ast.IsExported(owner) && d.Name.IsExported() {
				r.use(owner).mention(d.Type)
			}
		case *ast.GenDecl:
			enum := ""
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						r.use(s.Name.Name).mention(s.Type)
					}
				case *ast.ValueSpec:
					enum = r.values(s, d.Tok == token.CONST, enum)
				}
			}
		}
	}
}

// values notes constants or variables. enum is the type of those before them, which
// constants without one have as well; it returns that for those behind them.
func (r *room) values(s *ast.ValueSpec, constants bool, enum string) string {
	if id, ok := s.Type.(*ast.Ident); ok {
		enum = id.Name
	} else if s.Type != nil || s.Values != nil {
		enum = ""
	}
	for _, n := range s.Names {
		if !n.IsExported() {
			continue
		}
		u := r.use(n.Name)
		if constants {
			u.enum = enum
		}
		if s.Type != nil {
			u.mention(s.Type)
		}
	}
	return enum
}

func (r *room) use(name string) *use {
	if r.exported[name] == nil {
		r.exported[name] = &use{mentions: map[string]bool{}}
	}
	return r.exported[name]
}

// mention notes the exported names in a signature or a type: who has the one has the
// others without naming them. Members that are not exported do not count.
func (u *use) mention(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
					u.mention(f.Type)
				}
			}
			return false
		case *ast.SelectorExpr:
			return false
		case *ast.Ident:
			u.mentions[n.Name] = true
		}
		return true
	})
}

func receiver(t ast.Expr) string {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// note finds the names of other packages that a file uses. dir is that of its package.
func (h house) note(f *ast.File, dir string) {
	imported := map[string]*room{}
	for _, i := range f.Imports {
		full, err := strconv.Unquote(i.Path.Value)
		if err != nil || !strings.HasPrefix(full, module) || strings.TrimPrefix(full, module) == dir {
			continue
		}
		name := path.Base(full)
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = h[strings.TrimPrefix(full, module)]
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && imported[id.Name] != nil {
				if u := imported[id.Name].exported[s.Sel.Name]; u != nil {
					u.named = true
				}
			}
		}
		return true
	})
}

// unused are the exported names of a package that no other package names, and that are
// not part of a name which one does. A constant of a type is used where another of the
// type is: an enumeration is whole.
func (h house) unused(dir string) []string {
	r := h[dir]
	used := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		u := r.exported[name]
		if u == nil || used[name] {
			return
		}
		used[name] = true
		for m := range u.mentions {
			visit(m)
		}
		if u.enum != "" {
			visit(u.enum)
		}
	}
	for name, u := range r.exported {
		if u.named {
			visit(name)
		}
	}
	var left []string
	for name, u := range r.exported {
		if !used[name] && (u.enum == "" || !used[u.enum]) {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}
