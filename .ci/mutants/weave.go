package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// mark is in a binary that has mutants. Its digits are the number of the one that is on.
const mark = "the mutant that is on: 0000"

// marking is the file that each package with mutants gets.
const marking = `package %s

var mutantMark = "` + mark + `"

//go:noinline
func mutantOn(n string) bool { return mutantMark[len(mutantMark)-4:] == n }
`

// switchOn copies a binary and switches a mutant on in the copy.
func switchOn(binary, with string, n int) error {
	off, err := os.ReadFile(binary)
	on := fmt.Appendf(nil, "%s%04d", strings.TrimSuffix(mark, "0000"), n)
	return errors.Join(err, os.WriteFile(with, bytes.ReplaceAll(off, []byte(mark), on), 0o700)) //nolint:gosec // it is run
}

// weave returns the files, by path below root, of a build that has all mutants of one function's
// body each, and which those are. A mutant's number is its place in all and one.
func weave(root string, all []mutant) (files map[string]string, woven map[int]bool) {
	files, woven = map[string]string{}, map[int]bool{}
	for i, m := range all {
		text, err := os.ReadFile(filepath.Join(root, m.file))
		was := read(string(text), err)
		at, statement := was.call(read(m.changed(root)), i+1)
		if statement == "" {
			continue
		}
		woven[i+1] = true
		now := read(cmp.Or(files[m.file], was.text), nil)
		head := now.at(now.Decls[at].(*ast.FuncDecl).Body.Lbrace) + 1
		files[m.file] = now.text[:head] + statement + now.text[head:]
		files[filepath.Join(filepath.Dir(m.file), "mutant_on.go")] = fmt.Sprintf(marking, was.Name.Name)
	}
	return files, woven
}

// A source is a Go file, or nothing where that cannot be parsed.
type source struct {
	text string
	*ast.File
}

func read(text string, err error) source {
	file, wrong := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil || wrong != nil {
		return source{File: &ast.File{}}
	}
	return source{text, file}
}

func (s source) at(pos token.Pos) int { return int(pos - s.FileStart) }

// call returns the place of the function of which changed has another body and nothing else, and
// a statement that, at its head, does that where mutant n is on. One that recovers is not to be
// had: only the deferred function itself can.
func (s source) call(changed source, n int) (at int, statement string) {
	for i := range min(len(s.Decls), len(changed.Decls)) {
		was, _ := s.Decls[i].(*ast.FuncDecl)
		is, _ := changed.Decls[i].(*ast.FuncDecl)
		if was == nil || is == nil {
			continue
		}
		body := changed.text[changed.at(is.Body.Pos()):changed.at(is.Body.End())]
		if s.text[:s.at(was.Body.Pos())]+body+s.text[s.at(was.Body.End()):] != changed.text || strings.Contains(body, "recover()") {
			continue
		}
		if results := was.Type.Results; results != nil {
			types := s.text[s.at(results.Pos()):s.at(results.End())]
			return i, fmt.Sprintf(" if mutantOn(\"%04d\") { return func() %s %s() };", n, types, body)
		}
		return i, fmt.Sprintf(" if mutantOn(\"%04d\") { func() %s(); return };", n, body)
	}
	return 0, ""
}
