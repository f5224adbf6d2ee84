package redact

// rule finds one shape. match is called where trigger stands and returns the
// span from there (end 0: none) and where the rule may look next. That position
// keeps the whole linear: a rule which walked over many bytes does not start
// among them again. The kind [asView] says that b has to be looked at as a [view].
type rule struct {
	trigger string
	match   func(b []byte, i int) (s span, next int)
}

// byPair has the rules by the first two bytes of their triggers, in lists of which
// listOf has the number, and ruleCount how many there are. A trigger of one byte is in
// the lists of all pairs that it begins.
var byPair, listOf, ruleCount = func() (lists [][]numbered, number *[1 << 16]uint16, n int) {
	all := append(tokenRules(),
		rule{"eyJ", matchJWT},
		rule{"SG.", matchSendGrid},
		rule{pemOpen, matchPEM},
		rule{pemClose, matchPEMEnd},
		rule{":", matchAssignment},
		rule{"=", matchAssignment},
		rule{">", matchElement},
		rule{`",`, matchSecond},
		rule{`',`, matchSecond},
		rule{"--", matchArgument},
		rule{" -", matchShortArgument},
		rule{"password ", matchNetrc},
		rule{"ENV ", matchSet},
		rule{"setenv ", matchSet},
		rule{"set ", matchSet},
		rule{"://", matchURL},
		rule{`:\/\/`, matchURL},
		rule{"Bearer ", matchBearer},
		rule{"bearer ", matchBearer},
		rule{"Q~", matchAzure},
		rule{".atlasv1.", matchTerraform},
		rule{"_mmk", matchMaxMind},
		rule{":A", matchTelegram},
	)
	all = append(all, rule{markerOpen, seesMarker}, rule{"\x00", seesUTF16}, rule{"\x1b", seesEscape})
	for _, c := range invisibles {
		all = append(all, rule{c.text, seesInvisible})
	}
	for _, e := range escapes {
		all = append(all, rule{`\` + e, seesEscape})
	}
	lists, number = make([][]numbered, 1), new([1 << 16]uint16)
	for i, r := range all {
		from, to := 0, 256
		if len(r.trigger) > 1 {
			from, to = int(r.trigger[1]), int(r.trigger[1])+1
		}
		for second := from; second < to; second++ {
			pair := int(r.trigger[0])<<8 | second
			if number[pair] == 0 {
				number[pair] = uint16(len(lists)) // #nosec G115 -- at most 1<<16 - 1 pairs have rules
				lists = append(lists, nil)
			}
			lists[number[pair]] = append(lists[number[pair]], numbered{rule: r, index: i})
		}
	}
	return lists, number, len(all)
}()

// pairs says of two bytes whether a trigger begins with them, or is the first of
// them: in most text that is the only question, asked of 8 KiB that stay in the
// cache.
var pairs = func() (set [1 << 16 / 64]uint64) {
	for pair, list := range listOf {
		if list > 0 {
			set[pair/64] |= 1 << (pair % 64)
		}
	}
	return set
}()

type numbered struct {
	rule
	index int
}

// scan returns what the built-in rules find in b, in order of discovery. original says
// that b is no view; plain comes back false when it has to be one.
func scan(b []byte, original bool) (spans []span, plain bool) {
	next := make([]int, ruleCount)
	for i, c := range b {
		second := byte(0)
		if i+1 < len(b) {
			second = b[i+1]
		}
		pair := int(c)<<8 | int(second)
		if pairs[pair/64]&(1<<(second%64)) == 0 {
			continue
		}
		list := byPair[listOf[pair]]
		for k := range list {
			r := &list[k]
			if len(r.trigger) > 2 && (i+2 >= len(b) || b[i+2] != r.trigger[2]) {
				continue // most end here, without a call
			}
			if len(b)-i < len(r.trigger) || string(b[i:i+len(r.trigger)]) != r.trigger || i < next[r.index] {
				continue
			}
			s, n := r.match(b, i)
			if original && s.kind == asView {
				return nil, false
			}
			next[r.index] = n
			if s.end > 0 {
				spans = append(spans, s)
			}
		}
	}
	return spans, true
}
