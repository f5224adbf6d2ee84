package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// start is the folder that the command was called in or sent to.
func (a *app) start() (string, error) {
	dir := a.dir
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return "", usagef("-C %s: it is not a folder", dir)
	}
	if err != nil {
		return "", usagef("-C: %w", err)
	}
	return dir, nil
}

// project finds the project's folder: the nearest one upwards that holds a .lopen, else
// the top of the git work tree, else the current one. It belongs to this user, or they
// trust it.
func (a *app) project() (string, error) {
	home, _, err := a.places()
	return home, err
}

// places are the project's folder, home, which holds .lopen, and the folder whose documents and
// files a command is about, here: that of the linked work tree in which it was called, else home.
func (a *app) places() (home, here string, err error) {
	start, err := a.start()
	if err != nil {
		return "", "", err
	}
	home, here = a.search(start)
	if a.forbidden(home, start) {
		return "", "", usagef("%s is taken as a project only when it is named: lopen -C %s ...", shown(home), plain.Quote(home))
	}
	a.hideFleet(home)
	return home, here, a.owned(home, here, start)
}

// here is the project with its settings.
func (a *app) here() (string, *settings.Values, error) {
	project, err := a.project()
	if err != nil {
		return "", nil, err
	}
	values, err := a.projectSettings(project, nil)
	return project, values, err
}

// search goes upwards until the first .git: a .lopen above it is another project's. A linked
// work tree that has no .lopen leads to its main one's.
func (a *app) search(start string) (home, here string) {
	for dir := start; ; dir = filepath.Dir(dir) {
		may := !a.forbidden(dir, start)
		if may && holds(dir, lifecycle.Dir) {
			return dir, dir
		}
		if holds(dir, git.Mark) {
			if home, here, ok := a.linked(dir, start); ok {
				return home, here
			}
			if may {
				return dir, dir
			}
			return start, start
		}
		if dir == filepath.Dir(dir) {
			return start, start
		}
	}
}

// linked finds the project of a folder in a linked work tree, whose top is given: the nearest
// .lopen upwards from the same folder in the main work tree.
func (a *app) linked(top, start string) (home, here string, ok bool) {
	main, ok := git.MainWorkTree(top)
	below, err := filepath.Rel(top, start)
	if !ok || err != nil {
		return "", "", false
	}
	for ; ; below = filepath.Dir(below) {
		dir := filepath.Join(main, below)
		if home == "" && holds(dir, lifecycle.Dir) && !a.forbidden(dir, start) {
			home, here = dir, filepath.Join(top, below)
		}
		if below == "." {
			return home, here, home != ""
		}
		if repo := holds(dir, git.Mark); repo { // what was found is of another repository
			home = ""
		}
	}
}

// worktreeOf returns an error unless a folder is that of a project in a linked work tree.
func worktreeOf(home, folder string) error {
	if _, err := os.Stat(folder); err != nil {
		return err
	}
	for top := folder; ; top = filepath.Dir(top) {
		if !holds(top, git.Mark) && top != filepath.Dir(top) {
			continue
		}
		main, ok := git.MainWorkTree(top)
		below, err := filepath.Rel(top, folder)
		if !ok || err != nil || !git.Same(filepath.Join(main, below), home) {
			return fmt.Errorf("it is no work tree of the repository of %s", home)
		}
		return nil
	}
}

// forbidden says of the home folder and the root that they are no project, unless -C
// names them.
func (a *app) forbidden(dir, start string) bool {
	if a.dir != "" && dir == start {
		return false
	}
	home := a.getenv("HOME")
	return dir == filepath.Dir(dir) || (home != "" && git.Same(dir, home))
}

func holds(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// owned refuses a project whose folder, or .lopen, belongs to another user: its plan, its
// specification and its files would be worked through in this user's name. Git refuses such a
// work tree for the same reason.
func (a *app) owned(dir, here, start string) error {
	for _, path := range []string{filepath.Join(dir, lifecycle.Dir), dir + string(filepath.Separator), here + string(filepath.Separator)} {
		info, err := os.Lstat(path)
		if err != nil || !owner.Foreign(info) {
			continue
		}
		if safe, err := a.safe(dir); safe || err != nil {
			return err
		}
		return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%s belongs to %s: lopen works through no plan of another user\n%s",
			filepath.Clean(path), owner.Name(info), a.howToTrust(dir, start))}
	}
	return nil
}

// safe says whether the user's own settings, never a project's, name the folder.
func (a *app) safe(dir string) (bool, error) {
	values, err := a.settings(nil)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(values.SafeDirectories, func(safe string) bool {
		return safe == "*" || filepath.IsAbs(safe) && git.Same(safe, dir)
	}), nil
}

func (a *app) howToTrust(dir, start string) string {
	list, err := strictjson.Marshal([]string{dir})
	if err != nil {
		return ""
	}
	var ways strings.Builder
	if path, err := a.userConfigPath(); err == nil {
		fmt.Fprintf(&ways, "  trust it:         add \"safe_directories\": %s to %s\n", list, path)
	}
	fmt.Fprintf(&ways, "  for this command: LOPEN_SAFE_DIRECTORIES=%s lopen ...", quoted([]string{string(list)}))
	if dir != start {
		fmt.Fprintf(&ways, "\n  or begin your own project: %s", quoted([]string{"mkdir", filepath.Join(start, lifecycle.Dir)}))
	}
	return ways.String()
}

// path is a path that was typed, from where the command was called or sent to.
func (a *app) path(typed string) (string, error) {
	if filepath.IsAbs(typed) {
		return filepath.Clean(typed), nil
	}
	start, err := a.start()
	return filepath.Join(start, typed), err
}

// within turns a path that was typed into one of the project, which has it or not.
func (a *app) within(project, typed string) (string, error) {
	full, err := a.path(typed)
	if err != nil {
		return "", err
	}
	name, err := filepath.Rel(project, full)
	if err != nil || !filepath.IsLocal(name) {
		return "", usagef("%s is not in the project %s", typed, project)
	}
	return filepath.ToSlash(name), nil
}

// notFound gives an error that says that a file is not there its exit code.
func notFound(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", err, lifecycle.ErrNotFound)
	}
	return err
}
