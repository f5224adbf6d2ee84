package git

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxChanged bounds what is read of the changes in a submodule, in bytes.
const maxChanged = 64 << 10

// within returns a text that changes with the repository in a folder of a work tree: with its HEAD and, of a
// submodule, with its files. It is "" if that is not known.
func within(ctx context.Context, folder string, environ []string, submodule bool) string {
	ctx, cancel := context.WithTimeout(ctx, LookPatience)
	defer cancel()
	r, s := head(ctx, folder, environ)
	if r == nil {
		return ""
	}
	defer r.close()
	if !Same(r.top, folder) {
		return "" // a .git that is not believed
	}
	text := "commit " + s.Head
	if !submodule {
		return text
	}
	config, err := r.config(ctx)
	if err != nil || !r.comparable(config) {
		return ""
	}
	out, err := r.run(ctx, config, s.Head, maxChanged, "status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=all")
	if err != nil {
		return ""
	}
	var b strings.Builder
	for line := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if len(line) <= 3 { // two letters and a blank come before the path
			continue
		}
		fmt.Fprintf(&b, "%s\x00", line)
		if info, err := os.Lstat(filepath.Join(folder, string(line[3:]))); err == nil {
			fmt.Fprintf(&b, "%d %d", info.Size(), info.ModTime().UnixNano())
		}
	}
	return text + "\n" + b.String()
}
