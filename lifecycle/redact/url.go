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
