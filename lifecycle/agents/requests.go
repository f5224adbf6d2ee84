package agents

import "bytes"

// maxRequests bounds the requests that a Reader remembers.
const maxRequests = 1 << 17

// asked reports whether a file that is read before the open one has a request of Claude Code.
func (r *Reader) asked(id string) bool {
	for ; r.looked < r.next-1; r.looked++ {
		if f := r.history.file(r.at.Files[r.looked].Name); f != nil {
			r.look(*f)
		}
	}
	return r.requests[id]
}

// look remembers the requests of a file, with what was written behind the end of the pass. What cannot be read of it
// is reported where its records are taken.
func (r *Reader) look(f file) {
	from, err := openLines(f, &FilePosition{Until: whole}, Claude)
	if err != nil {
		return
	}
	defer from.Close()
	if r.requests == nil {
		r.requests = map[string]bool{}
	}
	for len(r.requests) < maxRequests {
		l, err := from.lines.next()
		if err != nil {
			return
		}
		if bytes.Contains(l.text, []byte(`"usage"`)) {
			each(l.text, func(l *claudeLine) bool {
				r.requests[l.request()] = true
				return true
			})
		}
	}
}
