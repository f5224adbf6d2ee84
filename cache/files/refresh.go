package files

// Refresh returns the base of further comparisons with s after next was compared
// with it: what was only touched is as in next, what is gone is dropped, and what
// next does not cover is as it was. What was created, modified or moved stays as it
// was in s and is told again, until somebody takes a new base.
func (s *Snapshot) Refresh(next *Snapshot) *Snapshot {
	dropped, replaced := map[string]bool{}, map[string]Fingerprint{}
	for _, c := range Compare(s, next) {
		switch c.Kind {
		case Deleted:
			dropped[c.Path] = true
		case Touched:
			replaced[c.Path] = *c.New
		case Modified, Mode:
			// The stat of what differs must not be taken for proof later, when At has moved
			// on: in the racy window the content changed under this very stat.
			f := *c.Old
			f.ModTime, f.ChangeTime, f.Inode = 0, 0, 0
			replaced[c.Path] = f
		}
	}
	out := &Snapshot{At: next.At, Paths: s.Paths, Skipped: s.Skipped, Files: make([]Fingerprint, 0, len(s.Files))}
	for _, f := range s.Files {
		if r, ok := replaced[f.Path]; ok {
			f = r
		}
		if !dropped[f.Path] {
			out.Files = append(out.Files, f)
		}
	}
	return out
}
