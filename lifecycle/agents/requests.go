package agents

import "bytes"

// maxRequests bounds the requests that a Reader remembers.
const maxRequests = 1 << 17

// asked reports whether a file that is read before the open one has a request of Claude Code.
func (r *Reader) asked(id string) bool {
	for ; r.looked < r.next-1; r.looked++ {
		if f := r.history.file(r.at.Files[r.looked].Name); f != nil {
			r.look(f.path)
		}
	}
	return r.requests[id]
}

// look remembers the requests of a file, with what was written behind the end of the pass. What cannot be read of it
// is reported where its records are taken.
func (r *Reader) look(path string) {
	src, err := openSource(path)
	if err != nil {
		return
	}
	defer src.Close()
	from, closer := src.content(src.size)
	defer closer.Close()
	if r.requests == nil {
		r.requests = map[string]bool{}
	}
	for all := newLines(from, 0, 0, src.unread(0)); len(r.requests) < maxRequests; {
		l, err := all.next()
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
