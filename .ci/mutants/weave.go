package main

import (
	"bytes"
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
func mutantOn() (n int) {
	for _, digit := range []byte(mutantMark[len(mutantMark)-4:]) {
		n = n*10 + int(digit-'0')
	}
	return n
}
`

// switchOn returns a binary in which mutant n is on.
func switchOn(binary []byte, n int) []byte {
	return bytes.ReplaceAll(binary, []byte(mark), fmt.Appendf(nil, "%s%04d", mark[:len(mark)-4], n))
}

// weave returns the files, by path below root, of a build that has all mutants of one function's
// body each, and which those are. A mutant's number is its place in all and one.
func weave(root string, all []mutant) (files map[string]string, woven map[int]bool) {
	files, woven = map[string]string{}, map[int]bool{}
	for i, m := range all {
		if filepath.Ext(m.file) != ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, m.file))
		was, changed := read(string(text), err), read(m.changed(root))
		at := was.differs(changed)
		if at < 0 {
			continue
		}
		woven[i+1] = true
		if files[m.file] == "" {
			files[m.file] = was.text
			files[filepath.Join(filepath.Dir(m.file), "mutant_on.go")] = fmt.Sprintf(marking, was.Name.Name)
		}
		now := read(files[m.file], nil)
		head := now.at(now.Decls[at].(*ast.FuncDecl).Body.Lbrace) + 1
		files[m.file] = now.text[:head] + changed.call(at, i+1) + now.text[head:]
	}
	return files, woven
}

// A source is a Go file.
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

func (s source) cut(from, to token.Pos) string { return s.text[s.at(from):s.at(to)] }

// differs returns the place of the function of which only the body is another in changed, or
// -1. One that recovers does not count: only the deferred function itself can.
func (s source) differs(changed source) int {
	for i := range min(len(s.Decls), len(changed.Decls)) {
		was, isFunc := s.Decls[i].(*ast.FuncDecl)
		is, staysFunc := changed.Decls[i].(*ast.FuncDecl)
		if !isFunc || !staysFunc || strings.Contains(s.cut(was.Pos(), was.End()), "recover()") {
			continue
		}
		if s.text[:s.at(was.Body.Pos())]+changed.cut(is.Body.Pos(), is.Body.End())+s.text[s.at(was.Body.End()):] == changed.text {
			return i
		}
	}
	return -1
}

// call returns a statement that does what the function at that place does, where mutant n is on.
func (s source) call(at, n int) string {
	f := s.Decls[at].(*ast.FuncDecl)
	body := s.cut(f.Body.Pos(), f.Body.End())
	if f.Type.Results == nil {
		return fmt.Sprintf(" if mutantOn() == %d { func() %s(); return };", n, body)
	}
	return fmt.Sprintf(" if mutantOn() == %d { return func() %s %s() };", n, s.cut(f.Type.Results.Pos(), f.Type.Results.End()), body)
}
