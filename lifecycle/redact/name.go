package redact

import (
	"bytes"
	b64 "encoding/base64"
	"strings"
)

// names are what the name of a secret ends in, lower case and without "_", "-",
// "." and " ", with the kind of its value. What only contains one of them is
// about the secret: password_hash, token_count, secretName.
var names = []struct{ suffix, kind string }{
	{"authorization", "authorization"},
	{"secretaccesskey", "aws-secret-key"},
	{"awssecretkey", "aws-secret-key"},
	{"password", "password"},
	{"passwd", "password"},
	{"passphrase", "password"},
	{"pwd", "password"},
	{"secret", "secret"},
	{"secretkey", "secret"},
	{"privatekey", "secret"},
	{"encryptionkey", "secret"},
	{"signingkey", "secret"},
	{"accountkey", "secret"},
	{"sharedkey", "secret"},
	{"sharedaccesskey", "secret"},
	{"masterkey", "secret"},
	{"apikey", "api-key"},
	{"accesskey", "api-key"},
	{"authkey", "api-key"},
	{"subscriptionkey", "api-key"},
	{"token", "token"},
	{"credential", "secret"},
	{"credentials", "secret"},
	{"creds", "secret"},
	{"deploykey", "secret"},
	{"amzsignature", "signature"},
	{"googsignature", "signature"},
	{"gitlabsession", "cookie"},
	{"clientkeydata", "secret"},
	{"secretkeybase", "secret"},
	{"presharedkey", "secret"},
	{"fernetkey", "fernet-key"},
	{"fernetkeys", "fernet-key"},
	{"loggedinkey", "secret"},
	{"noncekey", "secret"},
	{"authsalt", "secret"},
	{"loggedinsalt", "secret"},
	{"noncesalt", "secret"},
	{"storepass", "password"},
	{"sshpass", "password"},
	{"dbpass", "password"},
	{"rootpass", "password"},
	{"adminpass", "password"},
	{"userpass", "password"},
	{"smtppass", "password"},
	{"ldappass", "password"},
	{"requirepass", "password"},
	{"masterauth", "password"},
	{"bindpw", "password"},
	{"rootpw", "password"},
	{"keypass", "password"},
}

// byLast has the names by their last byte.
var byLast = func() (t [256][]struct{ suffix, kind string }) {
	for _, n := range names {
		last := n.suffix[len(n.suffix)-1]
		t[last] = append(t[last], n)
	}
	return t
}()

// wholeName returns the kind of names that mean a secret only when nothing stands before
// them: auth of Docker's config.json and of .npmrc, sig of a shared access signature.
func wholeName(low []byte) string {
	switch string(low) {
	case "auth":
		return "auth"
	case "sig":
		return "signature"
	case "cookie", "setcookie":
		return "cookie"
	case "psk", "wpapsk":
		return "password"
	}
	return ""
}

// maxName bounds how much of a name is looked at, from its end.
const maxName = 64

// nameKind returns the kind of value that name holds, "" for none. Digits at the
// end number a name and say nothing: API_KEY_2.
func nameKind(name []byte) string {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	var buf [maxName]byte
	low := buf[:0]
	for _, c := range name {
		switch {
		case isUpper(c):
			low = append(low, c+'a'-'A')
		case alnum[c]:
			low = append(low, c)
		}
	}
	for len(low) > 0 && isDigit(low[len(low)-1]) {
		low = low[:len(low)-1]
	}
	if len(low) < len("pwd") {
		return ""
	}
	for _, n := range byLast[low[len(low)-1]] {
		if len(low) >= len(n.suffix) && string(low[len(low)-len(n.suffix):]) == n.suffix {
			return n.kind
		}
	}
	if low[len(low)-1] == 's' && isPass(name) {
		return "password"
	}
	return wholeName(low)
}

// isPass reports whether name is, or ends in, the word pass: DB_PASS, dbPass, and
// neither bypass nor compass.
func isPass(name []byte) bool {
	n := len(name) - len("pass")
	if n < 0 || !bytes.EqualFold(name[n:], []byte("pass")) {
		return false
	}
	return n == 0 || !isLetter(name[n-1]) || isLower(name[n-1]) && isUpper(name[n]) && isLower(name[n+1])
}

// schemes are what stands before the credential in an Authorization header.
var schemes = []string{"bearer", "basic", "token", "apikey", "api-token", "digest", "negotiate", "bot"}

// scheme returns the length of the scheme and the blank that value begins with,
// 0 for none.
func scheme(value []byte) int {
	n := run(value, 0, dash, 12)
	if n == len(value) || value[n] != ' ' {
		return 0
	}
	for _, s := range schemes {
		if strings.EqualFold(s, string(value[:n])) {
			return n + 1
		}
	}
	return 0
}

// secretIn returns where in value the secret begins and ends, and whether there is one:
// value stands behind a name of that kind. quoted says that value was a string
// of its own and not a piece of code or prose.
func secretIn(kind string, value []byte, quoted bool) (from, to int, ok bool) {
	to = len(value)
	if kind == "authorization" {
		from = scheme(value)
		if from == 0 {
			return 0, to, randomToken(value)
		}
		return from, to, !placeholder(value[from:]) && len(value)-from >= 6 && mixed(value[from:])
	}
	if placeholder(value) {
		return 0, 0, false
	}
	switch kind {
	case "password":
		return 0, to, likePassword(value, quoted) && !isPath(value) && !isMeasure(value)
	case "aws-secret-key":
		return 0, to, len(value) >= 16 && mixed(value)
	case "auth":
		return 0, to, userAndPassword(value)
	case "cookie":
		return cookieIn(value)
	}
	return 0, to, (randomToken(value) || isUUID(value)) && !isMeasure(value)
}

// userAndPassword reports whether value is the base64 of user:password.
func userAndPassword(value []byte) bool {
	value = bytes.TrimRight(value, "=")
	if len(value) < 6 || len(value) > maxQuoted {
		return false
	}
	plain := make([]byte, b64.RawStdEncoding.DecodedLen(len(value)))
	n, err := b64.RawStdEncoding.Decode(plain, value)
	if err != nil {
		n, err = b64.RawURLEncoding.Decode(plain, value)
	}
	colon := bytes.IndexByte(plain[:n], ':')
	return err == nil && colon > 0 && bytes.IndexFunc(plain[:colon], func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

// cookieIn returns where in a cookie's text its first secret begins, the value of a pair
// or the text itself where it has none, and where the last one ends with the pairs behind
// it. Attributes and settings are none. A blank within a pair ends the cookie, and more
// than prose must stand before it.
func cookieIn(text []byte) (from, to int, ok bool) {
	ended := false
	for at := 0; at < len(text); {
		end := len(text)
		if n := bytes.IndexByte(text[at:], ';'); n >= 0 {
			end = at + n
		}
		begin, rest, secret := cookiePair(text[at:end], at == 0)
		if secret {
			if !ok {
				from, ok = at+begin, true
			}
			ended = false
		}
		if !ended {
			to = end - rest
			ended = rest > 0
		}
		at = end + 1
	}
	return from, to, ok
}

// cookiePair looks at what stands between the semicolons of a cookie: where its value
// begins, how much of it a blank cuts off, and whether it is a secret. Only the first one
// may be a value without a name.
func cookiePair(pair []byte, first bool) (begin, rest int, secret bool) {
	const minLen = 8
	n := bytes.IndexByte(pair, '=')
	name, value := bytes.TrimSpace(pair[:max(n, 0)]), pair[n+1:]
	_, attribute := attributes[string(bytes.ToLower(name))]
	if blank := bytes.IndexByte(value, ' '); blank >= 0 && n >= 0 && !attribute || blank > 0 && n < 0 && first {
		rest = len(value) - blank
		value = value[:blank]
	}
	if attribute || n < 0 && !(first && randomToken(value)) || len(value) < minLen {
		return n + 1, rest, false
	}
	return n + 1, rest, !placeholder(value) && mixed(value) && (rest == 0 || bytes.ContainsAny(value, "0123456789"))
}

var attributes = map[string]struct{}{"path": {}, "domain": {}, "expires": {}, "max-age": {}, "samesite": {}, "priority": {}}
