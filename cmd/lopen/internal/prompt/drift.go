package prompt

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// maxResources bounds how many sections a session remembers.
const maxResources = 256

// Resources adds what a prompt was made of to what the prompts before it were made of. Of a
// section that was given twice the newer checksum counts. At most 256 are kept, the newest.
func Resources(before, now []session.Resource) []session.Resource {
	type key struct{ kind, path, header string }
	of := func(r session.Resource) key { return key{r.Kind, r.Path, r.Header} }
	fresh := map[key]bool{}
	for _, r := range now {
		fresh[of(r)] = true
	}
	var all []session.Resource
	for _, r := range before {
		if !fresh[of(r)] {
			all = append(all, r)
		}
	}
	all = append(all, now...)
	return all[max(0, len(all)-maxResources):]
}

// A Drift is a piece of a document that is no longer what a prompt was made of.
type Drift struct {
	Path   string      `json:"path"`
	Header string      `json:"header"` // "" when the whole document is gone
	State  cache.Drift `json:"state"`
}

// Drifted compares what prompts were made of with the documents as they are. A
// document that cannot be read for another reason than that it is gone is passed
// over, and so is what is before the last 256 resources: no session remembers more.
// The files are in order. outlines is as in Documents.
func Drifted(outlines func(name string) (*cache.Outline, error), resources []session.Resource) []Drift {
	var all []Drift
	resources = slices.Clone(resources[max(0, len(resources)-maxResources):])
	slices.SortStableFunc(resources, func(a, b session.Resource) int { return strings.Compare(path.Clean(a.Path), path.Clean(b.Path)) })
	var now *cache.Comparer // with the file of the last path; nil where it could not be read
	last := ""
	for _, res := range resources {
		if res.Kind != "specification" {
			continue
		}
		if name := path.Clean(res.Path); name != last {
			now, last = nil, name // one file at a time is in memory
			o, err := outlines(name)
			if errors.Is(err, fs.ErrNotExist) {
				all = append(all, Drift{Path: res.Path, State: cache.Gone})
			}
			if err == nil && o != nil {
				now = cache.NewComparer(o)
			}
		}
		if now == nil {
			continue
		}
		if d := now.Given(res.Header, res.SHA256, res.Bytes); d != cache.Same {
			all = append(all, Drift{Path: res.Path, Header: res.Header, State: d})
		}
	}
	return all
}
