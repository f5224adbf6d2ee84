package checkpoint

import (
	"bytes"
	"slices"

	"github.com/lopen-dev/lopen/cache/files"
)

// The names that git tracks are the rule file at [files.TrackedPath], so that an entry's rules have those that
// were found and those in force. A name is in force from the moment at which it is found. One that is found no
// more stays in force if a task may have taken it out of the index: git rm --cached hides nothing.

// trackedIn returns the tracked names among ignore files.
func trackedIn(all []files.IgnoreFile) []byte {
	for _, f := range all {
		if f.Path == files.TrackedPath {
			return f.Data
		}
	}
	return nil
}

// withTracked returns rules with other tracked names.
func withTracked(r *files.Rules, names []byte) *files.Rules {
	if bytes.Equal(trackedIn(r.Files()), names) {
		return r
	}
	all := slices.DeleteFunc(slices.Clone(r.Files()), func(f files.IgnoreFile) bool { return f.Path == files.TrackedPath })
	if len(names) > 0 {
		all = append(all, files.IgnoreFile{Path: files.TrackedPath, Data: names})
	}
	return files.NewRules(all)
}

// knownTracked returns rules from outside in which the names that were found last stand for those that git
// could not be asked for.
func knownTracked(outside []files.IgnoreFile, was *Rules) []files.IgnoreFile {
	i := slices.IndexFunc(outside, func(f files.IgnoreFile) bool { return f.Path == files.TrackedPath && f.Data == nil })
	if i < 0 {
		return outside
	}
	outside = slices.Delete(slices.Clone(outside), i, i+1)
	if was != nil {
		if names := trackedIn(was.Found.Files()); len(names) > 0 {
			outside = append(outside, files.IgnoreFile{Path: files.TrackedPath, Data: names})
		}
	}
	return outside
}

// trackedInForce returns the names in force, given the names that are found now. was and task are those of
// inForce.
func trackedInForce(was *Rules, now []byte, task bool) []byte {
	held, then := trackedIn(was.InForce.Files()), trackedIn(was.Found.Files())
	if bytes.Equal(then, now) {
		return held
	}
	gone := map[string]bool{}
	if !task {
		for name := range bytes.SplitSeq(then, []byte{0}) {
			gone[string(name)] = true
		}
	}
	var names []string
	for name := range bytes.SplitSeq(now, []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	for name := range bytes.SplitSeq(held, []byte{0}) {
		if len(name) > 0 && !gone[string(name)] {
			names = append(names, string(name))
		}
	}
	return files.TrackedNames(names)
}
