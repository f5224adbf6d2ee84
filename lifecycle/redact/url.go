package redact

import "bytes"

// maxAuthority bounds how much of a URL is looked at.
const maxAuthority = 512

// matchURL is called at "://" and hides the password of user:password@host,
// plain words too: nobody writes a password into a URL that is none. A user that looks
// random is a token: token@host, token:x-oauth-basic@host.
func matchURL(b []byte, i int) (span, int) {
	from := i + 1
	for from < len(b) && from < i+5 && (b[from] == '/' || b[from] == '\\') {
		from++
	}
	authority := b[from:runUntil(b[:min(len(b), from+maxAuthority)], from, urlEnd)]
	// A password may hold an "@" that should have been escaped; a host cannot.
	at := bytes.LastIndexByte(authority, '@')
	if at < 0 {
		return span{}, i + 1
	}
	colon := bytes.IndexByte(authority[:at], ':')
	start := from + colon + 1
	switch user := bare(authority[:max(colon, 0)]); {
	case colon < 0:
		if user = bare(authority[:at]); !randomToken(user) && !isUUID(user) || placeholder(user) {
			return span{}, i + 1
		}
	case randomToken(user) || isUUID(user):
		start = from // a token, and x-oauth-basic or nothing for the password
	case placeholder(bare(authority[colon+1 : at])):
		return span{}, i + 1
	}
	s := span{start: start, end: from + at, rank: rankContext, kind: "url-password"}
	return s, s.end
}

// matchBearer hides what follows "Bearer " anywhere: tools print headers without
// their names.
func matchBearer(b []byte, i int) (span, int) {
	from := i + len("Bearer ")
	for from < len(b) && b[from] == mark {
		from++
	}
	to := run(b, from, bearer, -1)
	if to-from < 16 || !randomToken(b[from:min(to, from+sureBytes)]) {
		return span{}, to
	}
	return span{start: from, end: to, rank: rankContext, kind: "authorization"}, to
}

// passPorts are those of PostgreSQL and of what speaks as it does.
var passPorts = []string{"*", "5432", "5433", "5434", "5435", "5439", "6432", "6543", "15432", "25060", "26257"}

// matchPassfile is called at a colon before the port in a line of .pgpass, host:port:database:user:password, in which any
// of the first four may be a star.
func matchPassfile(b []byte, i int) (span, int) {
	host := skipBack(b, i, passHost, maxAuthority)
	if !beginsPassfile(b, host, i) {
		return span{}, i + 1
	}
	at := i + 1 + bytes.IndexByte(b[i+1:], ':')
	for range 2 { // the database and the user
		if at+1 >= len(b) || b[at] != ':' || !passBegin[b[at+1]] {
			return span{}, i + 1
		}
		at = runUntil(b[:min(len(b), at+maxAuthority)], at+1, passEnd)
	}
	if at >= len(b) || b[at] != ':' {
		return span{}, i + 1
	}
	to := runUntil(b, at+1, lineSpace)
	if l := lineOf(b, i); l.escaped && l.end > at {
		to = min(to, l.end)
	}
	value := bare(b[at+1 : min(to, at+maxAuthority)])
	if to < len(b) && b[to] == ' ' || len(value) < 3 || isExample(value) || value[0] == '*' {
		return span{}, i + 1
	}
	return span{start: at + 1, end: to, rank: rankContext, kind: "password"}, to
}

// beginsPassfile reports whether b[host:i] is a host, or the folder of a socket, at the beginning of a line or a string.
func beginsPassfile(b []byte, host, i int) bool {
	name := b[host:i]
	if run(name, 0, digits, -1) == len(name) || bytes.IndexByte(name, '/') > 0 { // the number or the file of a line
		return false
	}
	return host > 0 && closing[b[host-1]] || beginsLine(b, host)
}

// matchDSN is called at "@tcp(": user:password@tcp(host:port), as drivers of Go have it.
func matchDSN(b []byte, i int) (span, int) {
	start := skipBack(b, i, dsnWord, maxAuthority)
	if at := lineOf(b, i).word; at > start && bytes.IndexByte(b[at:max(at, i)], ':') > 0 {
		start = at
	}
	colon := bytes.IndexByte(b[start:i], ':')
	if colon <= 0 || isExample(bare(b[start+colon+1:i])) {
		return span{}, i + 1
	}
	return span{start: start + colon + 1, end: i, rank: rankContext, kind: "url-password"}, i + 1
}

// matchThin is called at ":thin:" and looks at user/password@.
func matchThin(b []byte, i int) (span, int) {
	from := i + len(":thin:")
	at := run(b, from, dsnWord, maxAuthority)
	if at == len(b) || b[at] != '@' || bytes.IndexByte(b[from:at], '/') <= 0 {
		return span{}, from
	}
	slash := from + bytes.IndexByte(b[from:at], '/')
	if isExample(bare(b[slash+1 : at])) {
		return span{}, at
	}
	return span{start: slash + 1, end: at, rank: rankContext, kind: "url-password"}, at
}
