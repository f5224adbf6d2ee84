package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// command is the begin of a command that a person may paste into a shell.
var command = regexp.MustCompile(`(^|[\s(` + "`" + `])(lopen ([a-z]+|-C) |git (-C|[a-z-]+ )|chmod |chown |rm |mv |cp |cd |kill |sed |mkdir |sudo |psql |fuser )`)

// prose are sentences that begin like a command.
var prose = regexp.MustCompile(`lopen (was|is|works|did|of|makes|has|itself) |git ([a-z-]+ (of|prints|printed)|ignores|did|would|is|says|of) `)

// verbs are the verbs of a format.
var verbs = regexp.MustCompile(`%(\[(\d+)\])?[-+# 0-9.*]*[a-zA-Z%]`)

// quoting are functions whose result a shell takes for words.
var quoting = map[string]bool{"Quote": true, "quoted": true, "filesOf": true, "Flags": true}

// harmless are types whose texts are one word each.
var harmless = map[string]bool{"lifecycle/session.ID": true, "lifecycle/checkpoint.ID": true}

// moduleName is the name of a variable or field with the name of a module: letters, digits, - and _.
var moduleName = regexp.MustCompile(`(?i)module$`)

// A hole is what a sentence leaves open after the begin of a command.
type hole struct {
	at   token.Position
	text string // of the sentence, up to the hole
	expr string
}

func (h hole) String() string {
	return fmt.Sprintf("%s: %s <- %s", h.at, strings.TrimSpace(h.text), h.expr)
}

// A listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// openHints returns what the sentences of packages of the module put into commands without quoting it.
func openHints(root, packages string) (found []hole, err error) {
	cmd := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,DepOnly", packages)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var ours []listed
	exports := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && !strings.HasPrefix(p.ImportPath, module+"bench") && p.ImportPath != module+"lifecycle/fleet/pgtest" {
			ours = append(ours, p)
		}
	}
	fset := token.NewFileSet()
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range ours {
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
		s := sentences{info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}, fset: fset}
		conf := types.Config{Importer: from}
		if _, err := conf.Check(p.ImportPath, fset, files, s.info); err != nil {
			return nil, err
		}
		for _, f := range files {
			ast.Inspect(f, s.inspect)
		}
		found = append(found, s.found...)
	}
	return found, nil
}

// sentences looks for holes in the texts of a package.
type sentences struct {
	info  *types.Info
	fset  *token.FileSet
	found []hole
}

func (s *sentences) inspect(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		for i, arg := range n.Args {
			if format, ok := s.constant(arg); ok && strings.Contains(format, "%") {
				s.format(format, n.Args[i+1:])
			}
		}
	case *ast.BinaryExpr:
		if n.Op == token.ADD {
			var text string
			s.sum(n, &text)
			return false
		}
	}
	return true
}

func (s *sentences) constant(e ast.Expr) (string, bool) {
	v := s.info.Types[e].Value
	if v == nil || v.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(v), true
}

func (s *sentences) format(format string, args []ast.Expr) {
	next := 0
	for _, m := range verbs.FindAllStringSubmatchIndex(format, -1) {
		if format[m[0]:m[1]] == "%%" {
			continue
		}
		if m[4] >= 0 {
			next = int(format[m[4]]-'0') - 1
		}
		if next < len(args) {
			s.hole(format[:m[0]], args[next])
		}
		next++
	}
}

// sum looks at the operands of a sum of texts.
func (s *sentences) sum(e ast.Expr, text *string) {
	if t, ok := s.constant(e); ok {
		*text += t
		return
	}
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.ADD {
		s.sum(b.X, text)
		s.sum(b.Y, text)
		return
	}
	s.hole(*text, e)
	*text += "x"
	ast.Inspect(e, s.inspect)
}

// hole notes an expression behind a text if it is a word of a command and may have any text.
func (s *sentences) hole(text string, e ast.Expr) {
	at := strings.LastIndexAny(text, "\n;") + 1
	for _, end := range []string{": ", ", ", " ("} {
		if i := strings.LastIndex(text[at:], end); i >= 0 {
			at += i + len(end)
		}
	}
	if !command.MatchString(text[at:]) || prose.MatchString(text[at:]) || s.safe(e) {
		return
	}
	s.found = append(s.found, hole{s.fset.Position(e.Pos()), text[at:], types.ExprString(e)})
}

func (s *sentences) safe(e ast.Expr) bool {
	t := s.info.Types[e].Type
	if b, ok := t.Underlying().(*types.Basic); ok && b.Info()&types.IsNumeric != 0 {
		return true
	}
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if harmless[strings.TrimPrefix(t.String(), module)] {
		return true
	}
	switch e := e.(type) {
	case *ast.CallExpr:
		name := e.Fun
		if f, ok := name.(*ast.SelectorExpr); ok {
			if f.Sel.Name == "String" || f.Sel.Name == "Short" {
				return s.safe(f.X)
			}
			name = f.Sel
		}
		id, ok := name.(*ast.Ident)
		return ok && quoting[id.Name]
	case *ast.SelectorExpr:
		return moduleName.MatchString(e.Sel.Name)
	case *ast.Ident:
		return moduleName.MatchString(e.Name)
	}
	return false
}
