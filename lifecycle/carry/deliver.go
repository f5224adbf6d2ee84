package carry

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

const documentPerm = 0o644

// documentKinds are the names that a document of the project may end in: those of specifications and research. Anything
// else may be read or run by a tool that nobody here asked, pip a list in any .txt, pytest a test in it.
var documentKinds = []string{".md", ".markdown"}

// Deliver writes the documents that are not here. What is here stays. An error concerns single
// documents, which the report names.
func (r *Received) Deliver(home Home) error {
	var errs []error
	for i, d := range r.header.Documents {
		p := &r.Documents[i]
		content, err := r.Document(d)
		if err != nil {
			return err
		}
		switch {
		case d.Kind == planKind:
			p.Path, err = r.deliverPlan(home, d, content)
		case d.Kind == settingsKind && r.whole:
			p.Path = folder.Store + "/" + settingsFile
			if _, err = home.Root().Lstat(settingsFile); err == nil {
				err = fs.ErrExist // whatever it is
			} else {
				err = writer.CreateFile(home.Root(), settingsFile, content, filePerm)
			}
		default:
			err = deliverDocument(home.Project(), d.Path, content)
		}
		var left *leftError
		switch {
		case err == nil:
			p.Became = DocumentWritten
		case errors.As(err, &left):
			p.Became, p.Why = DocumentLeft, left.Error()
		case errors.Is(err, fs.ErrExist):
			p.Became = DocumentDifferent
			if now, err := writer.ReadFile(home.Project(), p.Path, maxDocument); err == nil && folder.SHA256(now) == d.SHA256 {
				p.Became = DocumentSame
			}
		default:
			p.Became, p.Why = DocumentLeft, err.Error()
			errs = append(errs, fmt.Errorf("write document: %w", err))
		}
	}
	return errors.Join(errs...)
}

// obeyed matches the names of documents that agents look for and do what they say.
var obeyed = pattern(`(?i)(^|/)((claude|agents?|gemini|qwen|warp|crush|codex|opencode|cursor|replit|iflow|skill|copilot-instructions)(\.[a-z]+)?\.(md|markdown)|` +
	`[^/]*\.(instructions|prompt|chatmode|agent)\.md)$`)

// A leftError says why a document may not be written.
type leftError struct{ why string }

func (e *leftError) Error() string { return e.why }

func (r *Received) deliverPlan(home Home, d bundle.Document, content []byte) (string, error) {
	if session.ValidateModule(d.Module) != nil || !r.whole && !slices.ContainsFunc(r.header.Sessions, func(s bundle.Session) bool { return s.Module == d.Module }) {
		return d.Path, &leftError{"it is the plan of no module that came"}
	}
	return PlanPath(d.Module), home.CreatePlan(d.Module, content)
}

// deliverDocument writes a new file of the project. It follows no symlink.
func deliverDocument(project writer.FS, name string, content []byte) error {
	clean, err := files.CleanPath(name)
	switch {
	case err != nil || clean != name:
		return &leftError{"it has no path inside the project"}
	case strings.HasPrefix(name, ".") || strings.Contains(name, "/."):
		return &leftError{"its path has a hidden name"}
	case !slices.Contains(documentKinds, strings.ToLower(path.Ext(name))):
		return &leftError{"only documents of these kinds are written: " + strings.Join(documentKinds, " ")}
	case obeyed().MatchString(name):
		return &leftError{"agents do what a file of this name says"}
	}
	for dir := range ancestors(name) {
		info, err := project.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			if err = project.Mkdir(dir, 0o755); err == nil {
				err = project.SyncDir(path.Dir(dir))
			}
		} else if err == nil && !info.IsDir() {
			return &leftError{dir + " is there and is no folder"}
		}
		if err != nil {
			return err
		}
	}
	if _, err := project.Lstat(name); err == nil {
		return fs.ErrExist // whatever it is
	}
	return writer.CreateFile(project, name, content, documentPerm)
}

// ancestors yields the folders above a path, the outermost first.
func ancestors(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range len(name) {
			if name[i] == '/' && !yield(name[:i]) {
				return
			}
		}
	}
}
