package loop

import (
	"errors"
	"io/fs"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// maxResources bounds how many sections a session remembers.
const maxResources = 256

// used adds what a prompt was made of to what the prompts before were made of: of
// a section that was given twice the newer checksum counts.
func used(before, now []session.Resource) []session.Resource {
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

// drift says which sections that earlier prompts were made of are no longer what
// they were. What is done stays done: a person decides what runs again.
func (r *Runner) drift(st *session.State) {
	docs := map[string]*cache.Outline{}
	said := 0
	for _, res := range st.Header().Resources {
		if res.Kind != "specification" {
			continue
		}
		o, ok := docs[res.Path]
		if !ok {
			src, err := ReadSpec(r.cfg.Docs, res.Path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				r.cfg.UI.Warn("drift: %s is gone since the last run", res.Path)
				said++
			case err == nil:
				o = cache.NewOutline(src)
			}
			docs[res.Path] = o
		}
		if o == nil {
			continue
		}
		if d := cache.DriftOf(o, res.Header, res.SHA256, res.Bytes); d != cache.Same {
			r.cfg.UI.Warn("drift: %s, section %q is %s since the last run", res.Path, res.Header, d)
			said++
		}
	}
	if said > 0 {
		r.cfg.UI.Say("what is done stays done; untick a task to have it done again: lopen plan untick %s TASK", r.cfg.Module)
	}
}
