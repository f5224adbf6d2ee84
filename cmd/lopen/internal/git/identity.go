package git

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
)

// Identity says which repository a folder is in, wherever the folder lies. Either part may
// be "", and two repositories are the same only where both parts are.
//
// Root is the first commit of HEAD's first-parent history: merging another history, as
// `git subtree` does, does not change it. A shallow clone has none. Remote is where origin
// is fetched from, without credentials; https, ssh and the scp form of one place are
// equal.
//
// An Identity is a claim, not a proof. Whoever clones gets the Remote that they typed, so
// a hostile fork, which shares its Root with the project that it was forked from, is
// another repository: that is why both parts count. Whoever unpacks an archive with a
// .git in it gets what the archive's author wrote, and history is public: such an
// archive can pass for any repository whose address is known. What may depend on an
// Identity is therefore only that a person is not asked again, for exactly a command
// that they approved; never what the command is.
//
// Path distinguishes the projects of one repository: `make test` is another
// command in a folder of vendored code.
type Identity struct {
	Root   string // an object's name, in full
	Remote string
	Path   string // of the folder within the repository, with slashes; "." is its top
}

// Continues says whether i is what a folder that was old has become by its first commit.
// The remote counts as it was: an agent can name any, and so pass for any repository.
func (i Identity) Continues(old Identity) bool {
	return (old.Root == "" || old.Root == i.Root) && old.Remote == i.Remote && (old.Path == "" || old.Path == i.Path)
}

// String is the identity on one line, "" for none.
func (i Identity) String() string {
	if i.Root == "" && i.Remote == "" {
		return ""
	}
	var parts []string
	if i.Root != "" {
		parts = append(parts, "root "+i.Root)
	}
	if i.Remote != "" {
		parts = append(parts, "remote "+i.Remote)
	}
	if i.Path != "." {
		parts = append(parts, "folder "+i.Path)
	}
	return strings.Join(parts, " ")
}

// Identify returns the identity of the repository that a folder is in, and ErrNone where
// it is in none or in one that has neither a commit nor a remote. Any other error means
// that it could not be found out: git is not installed, did not end in time, or
// found the repository damaged. environ is the environment that git runs in.
func Identify(ctx context.Context, folder string, environ []string) (Identity, error) {
	r, err := find(ctx, folder, environ)
	if err != nil {
		return Identity{}, err
	}
	defer r.close()
	config, err := r.config(ctx)
	if err != nil {
		return Identity{}, err
	}
	commit, _, ok := r.headOf()
	if !ok || !r.comparable(config) {
		return Identity{}, fmt.Errorf("the HEAD of %s is not understood: %w", at(r.dir), ErrNone)
	}
	id := Identity{Remote: NormalRemote(config["remote.origin.url"])}
	if commit != "" && !r.shallow() {
		if id.Root, err = r.root(ctx, config, commit); err != nil {
			return Identity{}, fmt.Errorf("find the root commit of %s: %w", at(r.dir), err)
		}
	}
	if id == (Identity{}) { // before the path, which alone identifies nothing
		return Identity{}, fmt.Errorf("%s has neither a commit nor a remote: %w", r.top, ErrNone)
	}
	target, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return Identity{}, err
	}
	top, err := filepath.EvalSymlinks(r.top)
	if err != nil {
		return Identity{}, err
	}
	if id.Path, err = filepath.Rel(top, target); err != nil {
		return Identity{}, err
	}
	id.Path = filepath.ToSlash(id.Path)
	return id, nil
}

// shallow says whether history was cut off, so that its end is no root.
func (r *repository) shallow() bool {
	info, err := r.common.Lstat("shallow")
	return err == nil && info.Mode()&fs.ModeType == 0 && info.Size() > 0
}

func (r *repository) root(ctx context.Context, config map[string]string, commit string) (string, error) {
	out, err := r.run(ctx, config, commit, maxLine, "rev-list", "--first-parent", "--max-parents=0", "HEAD")
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(out))
	if !isID(id) {
		return "", fmt.Errorf("git rev-list printed %.80q", id)
	}
	return id, nil
}

// NormalRemote is a remote's address as HOST/PATH where git speaks to the host over an
// authenticated channel, and as it stands elsewhere. A user's name stays with ssh, where
// it can decide what a path means. A relative path names no one repository.
func NormalRemote(address string) string {
	if len(address) > maxLine {
		return ""
	}
	if !strings.Contains(address, "://") {
		host, file, scp := strings.Cut(address, ":")
		if !scp || strings.ContainsAny(host, `/\`) || len(host) == 1 { // a path, of Windows as well
			if !filepath.IsAbs(address) {
				return ""
			}
			return filepath.ToSlash(filepath.Clean(address))
		}
		address = "ssh://" + host + "/" + strings.TrimPrefix(file, "/")
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host, rest := strings.ToLower(u.Host), strings.TrimSuffix(strings.TrimRight(u.EscapedPath(), "/"), ".git")
	if u.RawQuery != "" {
		rest += "?" + u.RawQuery
	}
	switch scheme := strings.ToLower(u.Scheme); scheme {
	case "https":
		return strings.TrimSuffix(host, ":443") + rest
	case "ssh", "git+ssh", "ssh+git":
		if user := u.User.Username(); user != "" && user != "git" {
			host = user + "@" + host
		}
		return strings.TrimSuffix(host, ":22") + rest
	default:
		return scheme + "://" + host + rest
	}
}
