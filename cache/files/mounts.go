package files

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
