package redact

import "strings"

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
	for _, n := range names {
		if len(low) >= len(n.suffix) && string(low[len(low)-len(n.suffix):]) == n.suffix {
			return n.kind
		}
	}
	return ""
}

// schemes are what stands before the credential in an Authorization header.
var schemes = []string{"bearer", "basic", "token", "apikey", "digest", "negotiate"}

// scheme returns the length of the scheme and the blank that value begins with,
// 0 for none.
func scheme(value []byte) int {
	n := run(value, 0, alnum, 12)
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

// secretIn returns where in value the secret begins, and whether there is one:
// value stands behind a name of that kind. quoted says that value was a string
// of its own and not a piece of code or prose.
func secretIn(kind string, value []byte, quoted bool) (from int, ok bool) {
	if kind == "authorization" {
		from = scheme(value)
		if from == 0 {
			return 0, randomToken(value)
		}
		return from, !placeholder(value[from:]) && len(value)-from >= 6 && mixed(value[from:])
	}
	if placeholder(value) {
		return 0, false
	}
	switch kind {
	case "password":
		return 0, likePassword(value, quoted)
	case "aws-secret-key":
		return 0, len(value) >= 16 && mixed(value)
	}
	return 0, randomToken(value)
}
