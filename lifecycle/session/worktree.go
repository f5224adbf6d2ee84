package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"path/filepath"
	"strings"
)

// A Worktree is a linked work tree of the project's repository in whose files a session works,
// in the place of the project's folder. It does not change while the session exists.
type Worktree struct {
	Path   string `json:"path"`            // of the folder, with slashes; relative to the project's folder, or absolute
	Branch string `json:"branch,omitzero"` // the branch that was made with the work tree for a session; "" if a person made it
	Base   string `json:"base,omitzero"`   // HEAD when the session was made
}

// WorktreeAt returns the Worktree of a folder. A folder beside the project's or below it gets a
// relative path, so that both can be moved together.
func WorktreeAt(project, folder string) Worktree {
	near, err := filepath.Rel(filepath.Dir(project), folder)
	if err == nil && filepath.IsLocal(near) {
		if rel, err := filepath.Rel(project, folder); err == nil {
			folder = rel
		}
	}
	return Worktree{Path: filepath.ToSlash(folder)}
}

// Folder returns the absolute path of the folder, given that of the project. The Folder of nil is the
// project's.
func (w *Worktree) Folder(project string) string {
	if w == nil {
		return project
	}
	if p := filepath.FromSlash(w.Path); filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(project, filepath.FromSlash(w.Path))
}

// chainPrefix begins the name of the chain of a linked work tree.
const chainPrefix = "tree-"

// Chain returns the name of the chain of the work tree's checkpoints: it follows from the path.
// The chain of nil is main.
func (w *Worktree) Chain(main string) string {
	if w == nil {
		return main
	}
	sum := sha256.Sum256([]byte(w.Path))
	return chainPrefix + hex.EncodeToString(sum[:])[:16]
}

const maxWorktree = 4 << 10 // bytes of a path or a branch

func (w *Worktree) rules() *InvalidError {
	if err := cmp.Or(text("path of the work tree", w.Path, maxWorktree), text("branch of the work tree", w.Branch, maxWorktree), text("base of the work tree", w.Base, maxWorktree)); err != nil {
		return err
	}
	if w.Path == "" || path.Clean(w.Path) != w.Path || w.Path == "." || strings.ContainsRune(w.Path, 0) {
		return &InvalidError{Field: "path of the work tree", Value: w.Path, Want: "a clean path that is not the project's"}
	}
	return nil
}
