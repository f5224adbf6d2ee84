package redact

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
