package carry

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// The kinds of documents.
const (
	planKind          = "plan"
	specificationKind = "specification"
	researchKind      = "research"
	settingsKind      = "settings" // the project's config.json, in a backup
)

// settingsFile is the project's settings, below .lopen.
const settingsFile = "config.json"

const (
	// maxDocument bounds one document in bytes, and maxDocuments all of them: they are in
	// memory, since a person may write them meanwhile.
	maxDocument  = 16 << 20
	maxDocuments = 64 << 20
)

// A document is one that belongs to the sessions.
type document struct {
	bundle.Document
	content []byte
}

// first reports whether no document before has the same content.
func (d document) first(before []document) bool {
	return !slices.ContainsFunc(before, func(b document) bool { return b.SHA256 == d.SHA256 })
}

// gatherDocuments reads the plan, the specification and the research of each module, and the
// documents that a prompt of a session was made of.
func (x *exporter) gatherDocuments() error {
	g := gatherer{exporter: x, had: map[string]bool{}}
	for _, p := range x.parts {
		if err := g.ofModule(p.id.Module); err != nil {
			return err
		}
		for _, r := range p.resources {
			if slices.Contains([]string{specificationKind, researchKind}, r.Kind) {
				if err := g.add(r.Path, r.Kind, p.id.Module); err != nil {
					return err
				}
			}
		}
	}
	if x.o.Backup {
		modules, err := x.Root.ReadDir("modules")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, m := range modules {
			if session.ValidateModule(m.Name()) == nil && m.IsDir() {
				if err := g.ofModule(m.Name()); err != nil {
					return err
				}
			}
		}
		if err := g.add(folder.Store+"/"+settingsFile, settingsKind, ""); err != nil {
			return err
		}
	}
	slices.SortFunc(x.documents, func(a, b document) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// A gatherer reads documents, each once.
type gatherer struct {
	*exporter
	had   map[string]bool // paths, and modules with a slash
	bytes int
}

func (g *gatherer) ofModule(module string) error {
	if g.had[module+"/"] {
		return nil
	}
	g.had[module+"/"] = true
	if err := g.add(PlanPath(module), planKind, module); err != nil || g.o.Specification == nil {
		return err
	}
	spec := g.o.Specification(module)
	if err := g.add(spec, specificationKind, module); err != nil || !fs.ValidPath(spec) {
		return err
	}
	entries, err := g.Project.ReadDir(path.Dir(spec))
	if err != nil {
		return nil //nolint:nilerr // there is no such folder, or it is none
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "RESEARCH") && strings.HasSuffix(name, ".md") {
			if err := g.add(path.Join(path.Dir(spec), name), researchKind, module); err != nil {
				return err
			}
		}
	}
	return nil
}

// PlanPath returns the path of a module's plan below the project's folder.
func PlanPath(module string) string { return folder.Store + "/modules/" + module + "/plan.md" }

// add reads a document. One that is not there, or that cannot be carried, is left out.
func (g *gatherer) add(name, kind, module string) error {
	name = path.Clean(name)
	if g.had[name] {
		return nil
	}
	g.had[name] = true
	if !fs.ValidPath(name) || !utf8.ValidString(name) {
		return nil // it is not in the project
	}
	content, err := writer.ReadFile(g.Project, name, maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && g.bytes+len(content) > maxDocuments {
		err = fmt.Errorf("the documents have more than %d bytes together", maxDocuments)
	}
	if err != nil {
		g.damage("%s is left out: %v", name, err)
		return nil
	}
	content, _ = g.o.Redact.Bytes(content)
	g.bytes += len(content)
	sum := sha256.Sum256(content)
	g.documents = append(g.documents, document{bundle.Document{
		Path: name, Kind: kind, Module: module, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content)),
	}, content})
	return nil
}

// look finds out what the project's files are. What did not change since a checkpoint was made
// is not read.
func (x *exporter) look() error {
	var base *files.Snapshot
	dir, err := writer.OpenDir(x.Root, chainsDir)
	if err == nil {
		base = checkpoint.Remembered(dir, checkpoint.MainTree, x.Memory)
		_ = dir.Close()
	}
	opts := files.Options{}
	if x.Outside != nil {
		opts.Outside = x.Outside(x.ctx)
	}
	if x.project, err = files.Take(x.ctx, x.Project, base, opts); err != nil {
		return fmt.Errorf("export: look at the project's files: %w", err)
	}
	unread := 0
	for _, s := range x.project.Skipped {
		if s.Reason == files.Unreadable || s.Reason == files.Unstable {
			unread++
		}
	}
	if unread > 0 {
		x.warn("%d of the project's files could not be read: %s does not name them", unread, projectFile)
	}
	return nil
}

// projectLines reads the lines of a snapshot, without having all of them in memory.
type projectLines struct {
	files []files.Fingerprint
	line  []byte
}

func newProjectLines(s *files.Snapshot) *projectLines { return &projectLines{files: s.Files} }

// size returns how many bytes there are to read.
func (l *projectLines) size() (n int64) {
	for i := range l.files {
		n += int64(len(projectText(&l.files[i])))
	}
	return n
}

func (l *projectLines) Read(p []byte) (int, error) {
	for len(l.line) == 0 {
		if len(l.files) == 0 {
			return 0, io.EOF
		}
		l.line, l.files = projectText(&l.files[0]), l.files[1:]
	}
	n := copy(p, l.line)
	l.line = l.line[n:]
	return n, nil
}

func projectText(f *files.Fingerprint) []byte {
	p := projectLine{Path: f.Path, Size: f.Size, Mode: f.Mode.Perm(), SHA256: f.Content(), Target: strings.ToValidUTF8(f.Target, "\uFFFD")}
	if !utf8.ValidString(f.Path) {
		p.Path, p.Raw = "", []byte(f.Path)
	}
	text, err := strictjson.Marshal(p)
	if err != nil {
		return nil // it has nothing that cannot be encoded
	}
	return append(text, '\n')
}
