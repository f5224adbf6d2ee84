//go:build unix

package owner

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// roots says whether a file belongs to root.
func roots(info fs.FileInfo) bool {
	uid, ok := uidOf(info)
	return ok && uid == 0
}

// shared says whether users other than a file's owner and root may write it.
func shared(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode()&0o022 == 0 {
		return false
	}
	return info.Mode()&0o002 != 0 || !ownGroup(strconv.Itoa(int(st.Uid)), strconv.Itoa(int(st.Gid)))
}

// ownGroup says whether a group has no member but a user and root, and is the first group of the user or of root. Of a group that
// the files of this machine do not have, as with a directory service, the name has to be the user's.
func ownGroup(uid, gid string) bool {
	name := ""
	u, err := user.LookupId(uid)
	if err == nil {
		name = u.Username
	}
	if gid != "0" && (err != nil || u.Gid != gid) {
		return false
	}
	if mine, listed := onlyMember("/etc/group", "/etc/passwd", name, uid, gid); listed {
		return mine
	}
	g, err := user.LookupGroupId(gid)
	return err == nil && g.Name == name
}

// onlyMember says whether nobody but a user and root is in a group, by the files of groups and users. listed is
// false where they do not have the group.
func onlyMember(groups, users, name, uid, gid string) (mine, listed bool) {
	mine = true
	eachLine(groups, func(f []string) { // name:password:gid:members
		if len(f) == 4 && f[2] == gid {
			listed = true
			for member := range strings.SplitSeq(f[3], ",") {
				mine = mine && (member == "" || member == name || member == "root")
			}
		}
	})
	eachLine(users, func(f []string) { // name:password:uid:gid:...
		if len(f) >= 4 && f[3] == gid {
			mine = mine && (f[2] == uid || f[2] == "0")
		}
	})
	return mine, listed
}

// eachLine calls fn with the fields of each line of a file.
func eachLine(path string, fn func(fields []string)) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 16<<20))
	for lines.Scan() {
		fn(strings.Split(lines.Text(), ":"))
	}
}
