package git

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"strings"

	"github.com/lopen-dev/lopen/writer/documents"
)

// headOf returns the commit that HEAD is at and the branch that it is on. The commit is ""
// before the first one, the branch "(detached)", as git says it, where there is none. ok is
// false where HEAD is not understood: it is damaged, or references are kept as reftable.
func (r *repository) headOf() (commit, branch string, ok bool) {
	line, err := readLine(r.dir, "HEAD")
	if err != nil {
		return "", "", false
	}
	if isID(line) {
		return line, "(detached)", true
	}
	name, symbolic := strings.CutPrefix(line, "ref: ")
	if !symbolic || !isRef(name) {
		return "", "", false
	}
	if branch, ok = strings.CutPrefix(name, "refs/heads/"); !ok {
		branch = name
	}
	commit, ok = r.resolve(name)
	return commit, branch, ok
}

// resolve returns the commit that a reference is at, "" when there is no such reference.
// A branch that stands for another one is followed a few times.
func (r *repository) resolve(name string) (string, bool) {
	for range 5 {
		line, err := readLine(r.common, name)
		if err != nil {
			return r.packed(name)
		}
		if isID(line) {
			return line, true
		}
		next, symbolic := strings.CutPrefix(line, "ref: ")
		if !symbolic || !isRef(next) {
			return "", false
		}
		name = next
	}
	return "", false
}

// packed looks a reference up in packed-refs.
func (r *repository) packed(name string) (string, bool) {
	f, err := documents.Of(r.common).Open("packed-refs")
	if err != nil {
		return "", errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxPacked {
		return "", false
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		id, ref, ok := bytes.Cut(lines.Bytes(), []byte(" "))
		if ok && string(ref) == name && isID(string(id)) {
			return string(id), true
		}
	}
	return "", lines.Err() == nil
}

// isID says whether s is the name of an object, in full.
func isID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// isRef says whether s is the name of a reference that may be opened as a file: it
// leads nowhere else, and no part of it is one of git's own files.
func isRef(s string) bool {
	if !strings.HasPrefix(s, "refs/") || !fs.ValidPath(s) {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`\:~^?*[`, c) })
}
