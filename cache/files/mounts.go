package files

import "slices"

// elsewhere says whether what is at a path is left out, because something was mounted there since,
// or unmounted. A mount point is a path on another mount than the folder that it is in.
func (w *walker) elsewhere(path string, mounted bool) bool {
	if mounted != w.opts.Mounts[path] && w.opts.Mount != nil && !w.opts.Mount(path, mounted) {
		w.skip(path, Mounted, nil)
		return true
	}
	if mounted {
		w.mu.Lock()
		w.mounts = append(w.mounts, path)
		w.mu.Unlock()
	}
	return false
}

// Since returns the options with mounts treated as the project's ignore rules are: what was mounted
// since an earlier snapshot of the tree is left out, unless nobody was at work since (quiet), and
// stays left out until it is mounted anew.
func (o Options) Since(base *Snapshot, quiet bool) Options {
	o.Mounts = make(map[string]bool, len(base.Mounts))
	for _, path := range base.Mounts {
		o.Mounts[path] = true
	}
	o.Mount = func(path string, mounted bool) bool {
		return quiet && !(mounted && slices.ContainsFunc(base.Skipped, func(k Skip) bool { return k.Path == path && k.Reason == Mounted }))
	}
	return o
}
