package redact

import (
	"slices"
	"sync"
)

// rule finds one shape. match is called where trigger stands and returns the
// span from there (end 0: none) and where the rule may look next. That position
// keeps the whole linear: a rule which walked over many bytes does not start
// among them again. The kind [asView] says that b has to be looked at as a [view].
type rule struct {
	trigger string
	match   func(b []byte, i int) (s span, next int)
	many    func(s *scanner, i int) (next int) // in its place: adds spans itself
	apart   int                                // its group, where that is not for others: see placesOf
}

// byPair has the rules by the first two bytes of their triggers, in lists of which
// listOf has the number, and ruleCount how many there are. A trigger of one byte is in
// the lists of all pairs that it begins. They are made by prepare.
var (
	byPair    [][]numbered
	listOf    *[1 << 16]uint16
	ruleCount int
	places    *[256]uint64 // see placesOf
)

// prepare makes the tables, once: they take longer than a short command, which may scan nothing.
var prepare = sync.OnceFunc(func() {
	all := slices.Concat(tokenRules(), phraseRules(), tableRules(), csvRules(), []rule{
		{trigger: "INSERT INTO ", many: (*scanner).insertInto},
		{trigger: "insert into ", many: (*scanner).insertInto},

		{trigger: "eyJ", match: matchJWT},
		{trigger: "SG.", match: matchSendGrid},
		{trigger: `"d":`, match: matchJWK},
		{trigger: `"k":`, match: matchJWK},
		{trigger: `("`, match: matchCall, apart: groupCall},
		{trigger: `('`, match: matchCall, apart: groupCall},
		{trigger: "\"\r\n", match: matchForm},
		{trigger: ":", match: matchAssignment},
		{trigger: "=", match: matchAssignment},
		{trigger: ">", match: matchElement},
		{trigger: `",`, match: matchSecond},
		{trigger: `',`, match: matchSecond},
		{trigger: "--", match: matchArgument},
		{trigger: " -", match: matchShortArgument},
		{trigger: "password ", match: matchNetrc},
		{trigger: "pass ", match: matchDirective},
		{trigger: "rauth ", match: matchDirective},
		{trigger: "dpw ", match: matchDirective},
		{trigger: "tpw ", match: matchDirective},
		{trigger: "ENV ", match: matchSet},
		{trigger: "setenv ", match: matchSet},
		{trigger: "set ", match: matchSet},
		{trigger: "://", match: matchURL},
		{trigger: `:\/\/`, match: matchURL},
		{trigger: "Bearer ", match: matchBearer},
		{trigger: "bearer ", match: matchBearer},
		{trigger: "Q~", match: matchAzure},
		{trigger: ".atlasv1.", match: matchTerraform},
		{trigger: "_mmk", match: matchMaxMind},
		{trigger: ":A", match: matchTelegram},
		{trigger: "passwd", match: matchChpasswd},
		{trigger: "%3AA", match: matchTelegram},
		{trigger: "setx ", match: matchSet},
		{trigger: "SETX ", match: matchSet},
		{trigger: "@tcp(", match: matchDSN},
		{trigger: "@unix(", match: matchDSN},
		{trigger: ":thin:", match: matchThin},
		{trigger: "Private-Lines: ", match: matchPuTTY},
		{trigger: "Private-MAC: ", match: matchPuTTYEnd},
	})
	for i := range armors {
		a := &armors[i]
		all = append(all, rule{trigger: a.open, match: a.match}, rule{trigger: a.close, match: a.matchEnd})
	}
	for _, port := range passPorts {
		all = append(all, rule{trigger: ":" + port + ":", match: matchPassfile})
	}
	all = append(all, rule{trigger: markerOpen, match: seesMarker}, rule{trigger: "\x00", match: seesUTF16}, rule{trigger: "\x1b", match: seesEscape})
	for _, c := range invisibles {
		all = append(all, rule{trigger: c.text, match: seesInvisible})
	}
	for _, e := range escapes {
		all = append(all, rule{trigger: `\` + e, match: seesEscape, apart: groupEscape})
	}
	lists, number := make([][]numbered, 1), new([1 << 16]uint16)
	for i, r := range all {
		from, to, third := 0, 256, int16(-1)
		if len(r.trigger) > 1 {
			from, to = int(r.trigger[1]), int(r.trigger[1])+1
		}
		if len(r.trigger) > 2 {
			third = int16(r.trigger[2])
		}
		for second := from; second < to; second++ {
			pair := int(r.trigger[0])<<8 | second
			if number[pair] == 0 {
				number[pair] = uint16(len(lists)) // #nosec G115 -- at most 1<<16 - 1 pairs have rules
				lists = append(lists, nil)
			}
			lists[number[pair]] = append(lists[number[pair]], numbered{third, int32(i), &all[i]}) // #nosec G115 -- there are some hundred
		}
	}
	byPair, listOf, ruleCount, places = lists, number, len(all), placesOf(all)
})

// common has the groups, in its lowest bits, that a trigger may be of that begins with
// bytes of these places.
func common(first, second, third uint64) uint64 {
	return first & (second >> groups) & (third >> (2 * groups)) & (1<<groups - 1)
}

// none says that no trigger begins at the first eight of b.
func none(b *[10]byte) bool {
	t0, t1, t2, t3, t4 := places[b[0]], places[b[1]], places[b[2]], places[b[3]], places[b[4]]
	t5, t6, t7, t8, t9 := places[b[5]], places[b[6]], places[b[7]], places[b[8]], places[b[9]]
	return common(t0, t1, t2)|common(t1, t2, t3)|common(t2, t3, t4)|common(t3, t4, t5)|
		common(t4, t5, t6)|common(t5, t6, t7)|common(t6, t7, t8)|common(t7, t8, t9) == 0
}

// A numbered rule is what is looked at where the first two bytes of its trigger stand. The third one is in
// place, as most looks end with it.
type numbered struct {
	third int16 // -1 where the trigger is shorter
	index int32
	*rule
}

// triggered says whether a text begins with the rule's trigger.
func (r *rule) triggered(b []byte) bool {
	return len(b) >= len(r.trigger) && string(b[:len(r.trigger)]) == r.trigger
}

// passOver returns the first place from i on at which a trigger may begin. It looks at
// eight places at a time.
func passOver(b []byte, i int) int {
	for i+10 <= len(b) && none((*[10]byte)(b[i:])) {
		i += 8
	}
	return i
}

// scan returns what the built-in rules find in b, in order of discovery. original says
// that b is no view; plain comes back false when it has to be one.
func scan(b []byte, original bool) (spans []span, plain bool) {
	prepare()
	s := scanner{b: b, original: original}
	each := 0 // up to here each place is asked alone
	for i := 0; i < len(b); i++ {
		if i >= each {
			i = passOver(b, i)
			each = i + 8
		}
		if i+2 < len(b) && common(places[b[i]], places[b[i+1]], places[b[i+2]]) == 0 {
			continue
		}
		if !s.ask(i) {
			return nil, false
		}
	}
	return s.spans, true
}

// A scanner is a scan so far.
type scanner struct {
	b        []byte
	original bool
	next     []int // by rule: from where on it may match; nil where none has
	spans    []span
}

// ask has the rules look at a place. It returns false where b has to be a view.
func (s *scanner) ask(i int) bool {
	b, second, third := s.b, byte(0), int16(-2)
	if i+1 < len(b) {
		second = b[i+1]
	}
	if i+2 < len(b) {
		third = int16(b[i+2])
	}
	list := byPair[listOf[int(b[i])<<8|int(second)]]
	for k := range list {
		r := &list[k]
		if r.third >= 0 && r.third != third {
			continue // most end here, without a call
		}
		if !r.triggered(b[i:]) || s.next != nil && i < s.next[r.index] {
			continue
		}
		var found span
		var n int
		if r.many != nil {
			n = r.many(s, i)
		} else if found, n = r.match(b, i); s.original && found.kind == asView {
			return false
		}
		if n > i+1 {
			if s.next == nil {
				s.next = make([]int, ruleCount)
			}
			s.next[r.index] = n
		}
		if found.end > 0 {
			s.spans = append(s.spans, found)
		}
	}
	return true
}
