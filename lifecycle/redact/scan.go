package redact

// rule finds one shape. match is called where trigger stands and returns the
// span from there (end 0: none) and where the rule may look next. That position
// keeps the whole linear: a rule which walked over many bytes does not start
// among them again.
type rule struct {
	trigger string
	match   func(b []byte, i int) (s span, next int)
}

// rules by the first byte of their triggers.
var byFirst, ruleCount = func() (t [256][]numbered, n int) {
	all := append(tokenRules(),
		rule{"eyJ", matchJWT},
		rule{"SG.", matchSendGrid},
		rule{pemOpen, matchPEM},
		rule{":", matchAssignment},
		rule{"=", matchAssignment},
		rule{"://", matchURL},
		rule{`:\/\/`, matchURL},
		rule{"Bearer ", matchBearer},
		rule{"bearer ", matchBearer},
	)
	for i, r := range all {
		t[r.trigger[0]] = append(t[r.trigger[0]], numbered{rule: r, index: i})
	}
	return t, len(all)
}()

// pairs says of two bytes whether a trigger begins with them, or is the first of
// them: in most text that is the only question, asked of 8 KiB that stay in the
// cache.
var pairs = func() (set [1 << 16 / 64]uint64) {
	for first, rules := range byFirst {
		for _, r := range rules {
			for second := range 256 {
				if len(r.trigger) == 1 || int(r.trigger[1]) == second {
					set[(first<<8|second)/64] |= 1 << (second % 64)
				}
			}
		}
	}
	return set
}()

type numbered struct {
	rule
	index int
}

// scan returns what the built-in rules find in b, in order of discovery.
func scan(b []byte) []span {
	var spans []span
	next := make([]int, ruleCount)
	for i, c := range b {
		second := byte(0)
		if i+1 < len(b) {
			second = b[i+1]
		}
		if pairs[(int(c)<<8|int(second))/64]&(1<<(second%64)) == 0 {
			continue
		}
		for k := range byFirst[c] {
			r := &byFirst[c][k]
			if len(b)-i < len(r.trigger) || string(b[i:i+len(r.trigger)]) != r.trigger || i < next[r.index] {
				continue
			}
			s, n := r.match(b, i)
			next[r.index] = n
			if s.end > 0 {
				spans = append(spans, s)
			}
		}
	}
	return spans
}
