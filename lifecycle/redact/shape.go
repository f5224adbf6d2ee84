package redact

import "bytes"

// Tokens that have their vendor's mark not at their beginning.

// before reports whether the n bytes before b[i] are of class c, and no more of them.
func before(b []byte, i, n int, c *class) bool {
	if i < n || i > n && c[b[i-n-1]] {
		return false
	}
	return run(b, i-n, c, n) == i
}

// matchAzure takes a client secret of Azure: three bytes, a digit, "Q~", and 31 to 34.
func matchAzure(b []byte, i int) (span, int) {
	const head, minBody, maxBody = 4, 31, 34
	end := run(b, i+2, tilde, maxBody+1)
	if end-i-2 < minBody || end-i-2 > maxBody || i < head || !isDigit(b[i-1]) || !before(b, i, head, tilde) {
		return span{}, i + 1
	}
	return span{start: i - head, end: end, rank: rankToken, kind: "azure-secret"}, end
}

// matchTerraform takes 14 bytes, ".atlasv1.", and from 60 on.
func matchTerraform(b []byte, i int) (span, int) {
	const head, minBody = 14, 60
	body := i + len(".atlasv1.")
	end := run(b, body, base64, -1)
	if end-body < minBody || !before(b, i, head, alnum) {
		return span{}, i + 1
	}
	return span{start: i - head, end: end, rank: rankToken, kind: "terraform-token"}, end
}

// matchMaxMind takes six bytes, "_", 29 bytes, "_mmk".
func matchMaxMind(b []byte, i int) (span, int) {
	const tail, head = 29, 6
	if !before(b, i, tail, alnum) || i < tail+1+head || b[i-tail-1] != '_' || run(b, i-tail-1-head, alnum, head) != i-tail-1 {
		return span{}, i + 1
	}
	end := i + len("_mmk")
	return span{start: i - tail - 1 - head, end: end, rank: rankToken, kind: "maxmind-key"}, end
}

// matchTelegram takes the number of a bot, ":A", and 34 bytes. In a URL it stands behind "bot", and the colon may be
// escaped.
func matchTelegram(b []byte, i int) (span, int) {
	const minID, maxID, minBody = 5, 16, 33
	body := i + 1
	if b[i] == '%' {
		body = i + len("%3A")
	}
	end := run(b, body, dash, -1)
	start := skipBack(b, i, digits, maxID+1)
	word := start > 0 && isLetter(b[start-1]) && !bytes.HasSuffix(b[:start], []byte("/bot"))
	if end-body-1 < minBody || i-start < minID || i-start > maxID || word || !looksIssued(b, i, body, min(end, i+sureBytes)) {
		return span{}, i + 1
	}
	return span{start: start, end: end, rank: rankToken, kind: "telegram-token"}, end
}

// matchJWT takes a JSON Web Token: two or more base64url parts joined by dots,
// the first the beginning of a JSON object. A signature that was cut off or is
// empty does not save the claims. A lone first part says nothing secret.
func matchJWT(b []byte, i int) (span, int) {
	const minHeader, minPart, maxParts = 14, 8, 5
	end := run(b, i, dash, -1)
	// All starts within this run share its end: what follows fails for all.
	next := end
	if end-i < minHeader {
		return span{}, next
	}
	parts := 1
	claims := false
	for parts < maxParts && end+1 < len(b) && b[end] == '.' {
		to := run(b, end+1, dash, -1)
		if to-end-1 < minPart {
			break
		}
		if parts == 1 {
			claims = string(b[end+1:end+3]) == "ey"
		}
		end = to
		parts++
	}
	if parts < 2 || parts == 2 && !claims {
		return span{}, next
	}
	return span{start: i, end: end, rank: rankToken, kind: "jwt"}, end
}

// matchSendGrid takes "SG.", 22 bytes, a dot, 43 bytes.
func matchSendGrid(b []byte, i int) (span, int) {
	id := run(b, i+3, dash, 23)
	if id-i-3 != 22 || id >= len(b) || b[id] != '.' {
		return span{}, i + 1
	}
	end := run(b, id+1, dash, -1)
	if end-id-1 < 40 {
		return span{}, i + 1
	}
	return span{start: i, end: end, rank: rankToken, kind: "sendgrid-key"}, end
}

// matchJWK takes the secret number of a JSON Web Key, or a symmetric key, which has another member that says what it is.
func matchJWK(b []byte, i int) (span, int) {
	const minLen, reach = 22, 4096
	at := i + len(`"d":`)
	from, to, quoted := valueAfter(b, at, "secret")
	value := bare(b[from:to])
	if !quoted || len(value) < minLen || run(value, 0, dash, -1) < len(value) || !bytes.Contains(b[max(0, i-reach):min(len(b), to+reach)], []byte(`"kty"`)) {
		return span{}, at
	}
	return span{start: from, end: to, rank: rankContext, kind: "secret"}, to
}

// matchFernet is called at the "=" that a key of Fernet ends with and a quotation mark: b'key', as Python prints it.
func matchFernet(b []byte, i int) (span, int) {
	from := i + 1 - fernetLen
	if from < 2 || b[from-1] != '\'' || b[from-2] != 'b' || from > 2 && alnum[b[from-3]] || !isFernetKey(b[from:i+1]) {
		return span{}, i + 1
	}
	return span{start: from, end: i + 1, rank: rankContext, kind: "fernet-key"}, i + 1
}

// fernetLen is the length of 32 bytes in base64.
const fernetLen = 44

func isFernetKey(value []byte) bool {
	if len(value) != fernetLen || run(value, 0, dash, -1) != fernetLen-1 || value[fernetLen-1] != '=' {
		return false
	}
	u, l, d := cases(value)
	return u && l && d
}

// isBotToken reports whether value is what bots of Discord log in with: their number in base64, a time, a signature.
func isBotToken(value []byte) bool {
	const minNumber, maxNumber, timeLen, minSignature = 22, 30, 6, 25
	number := run(value, 0, alnum, -1)
	at := number + 1 + timeLen
	return number >= minNumber && number <= maxNumber && len(value)-at-1 >= minSignature && value[number] == '.' &&
		run(value, number+1, dash, -1) == at && value[at] == '.' && run(value, at+1, dash, -1) == len(value) && looksIssued(value, 0, 0, len(value))
}
