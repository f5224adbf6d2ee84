package files

// Refresh returns the base of further comparisons with s after next was compared
// with it: what was only touched is as in next, what is gone is dropped, and what
// next does not cover is as it was. What was created, modified or moved stays as it
// was in s and is reported again, until somebody takes a new base.
func (s *Snapshot) Refresh(next *Snapshot) *Snapshot {
	stays := map[string]bool{} // gone, but reported again: what was moved, and the folders it was in
	for _, c := range Compare(s, next) {
		if c.Kind == Moved {
			for p := c.From; p != "."; p = parent(p) {
				stays[p] = true
			}
		}
	}
	replaced := map[string]*Fingerprint{} // nil: dropped
	each(s, next, func(a, b *Fingerprint) {
		switch {
		case b == nil && !stays[a.Path]:
			replaced[a.Path] = nil
		case a == nil || b == nil || *a == *b:
		case a.sameContent(b) && a.Mode == b.Mode:
			replaced[a.Path] = b
		default:
			// The stat of what differs must not be taken for proof later, when At has moved
			// on: in the racy window the content changed under this very stat.
			f := *a
			f.ModTime, f.ChangeTime, f.Inode = 0, 0, 0
			replaced[a.Path] = &f
		}
	})
	out := &Snapshot{At: next.At, Paths: s.Paths, Skipped: s.Skipped, Files: make([]Fingerprint, 0, len(s.Files))}
	for _, f := range s.Files {
		r, ok := replaced[f.Path]
		switch {
		case !ok:
			out.Files = append(out.Files, f)
		case r != nil:
			out.Files = append(out.Files, *r)
		}
	}
	return out
}
