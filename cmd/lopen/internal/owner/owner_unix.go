//go:build unix

package owner

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Foreign says whether a file belongs to another user.
func Foreign(info fs.FileInfo) bool {
	uid, ok := uidOf(info)
	if !ok {
		return false
	}
	me := os.Geteuid()
	return uid != me && (me != 0 || strconv.Itoa(uid) != os.Getenv("SUDO_UID"))
}

// Mine says whether a file belongs to the user of this process, and to nobody on whose
// behalf it works.
func Mine(info fs.FileInfo) bool {
	uid, ok := uidOf(info)
	return ok && uid == os.Geteuid()
}

// Same says whether two files have one owner.
func Same(a, b fs.FileInfo) bool {
	au, aok := uidOf(a)
	bu, bok := uidOf(b)
	return aok && bok && au == bu
}

// Name is the owner's login name and number, for people.
func Name(info fs.FileInfo) string {
	uid, ok := uidOf(info)
	if !ok {
		return "an unknown user"
	}
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username + " (uid " + id + ")"
	}
	return "uid " + id
}

func uidOf(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
