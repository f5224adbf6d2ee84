package redact

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

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
// the lists of all pairs that it begins. They are made by prepare.
var (
	byPair    [][]numbered
	listOf    *[1 << 16]uint16
	ruleCount int
	places    *[256]uint64 // see placesOf
)

// prepare makes the tables, once: they take longer than a short command, which may scan nothing.
var prepare = sync.OnceFunc(func() {
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
	lists, number := make([][]numbered, 1), new([1 << 16]uint16)
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
	byPair, listOf, ruleCount, places = lists, number, len(all), placesOf(all)
})

// groups is how many the triggers are put into.
const groups = 21

// placesOf says of each byte in which groups it is the first byte of a trigger, the second one
// and the third one: groups bits for each. A trigger that is shorter may have any byte there. Only
// where three bytes in a row have a group in common a trigger may begin, which is so at
// one place of twenty in most text, and eight places are asked at once.
func placesOf(all []rule) *[256]uint64 {
	all = slices.SortedFunc(slices.Values(all), func(a, b rule) int {
		return cmp.Or(min(len(a.trigger), 3)-min(len(b.trigger), 3), strings.Compare(a.trigger, b.trigger))
	})
	t, long := new([256]uint64), slices.IndexFunc(all, func(r rule) bool { return len(r.trigger) > 2 })
	for i, r := range all {
		group := len(r.trigger) - 1
		if i >= long { // those that begin alike are together
			group = 2 + (i-long)*(groups-2)/(len(all)-long)
		}
		for k := range 3 {
			bit := uint64(1) << (k*groups + group)
			if k < len(r.trigger) {
				t[r.trigger[k]] |= bit
				continue
			}
			for c := range t {
				t[c] |= bit
			}
		}
	}
	return t
}

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

type numbered struct {
	rule
	index int
}

// triggered says whether a text begins with the rule's trigger.
func (r *numbered) triggered(b []byte) bool {
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
	b, second := s.b, byte(0)
	if i+1 < len(b) {
		second = b[i+1]
	}
	list := byPair[listOf[int(b[i])<<8|int(second)]]
	for k := range list {
		r := &list[k]
		if len(r.trigger) > 2 && (i+2 >= len(b) || b[i+2] != r.trigger[2]) {
			continue // most end here, without a call
		}
		if !r.triggered(b[i:]) || s.next != nil && i < s.next[r.index] {
			continue
		}
		found, n := r.match(b, i)
		if s.original && found.kind == asView {
			return false
		}
		if s.next == nil {
			s.next = make([]int, ruleCount)
		}
		s.next[r.index] = n
		if found.end > 0 {
			s.spans = append(s.spans, found)
		}
	}
	return true
}
