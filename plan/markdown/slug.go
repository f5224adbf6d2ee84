package markdown

import (
	"strconv"
	"strings"
	"unicode"
)

// Slug reduces a text to lower-case letters and digits of any script, with one
// '-' for each run of anything else between them: "Add JWT validation!" becomes
// "add-jwt-validation". A text without either becomes "item".
func Slug(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range text {
		// Marks belong to the letter before them: without its vowel signs a
		// Devanagari word is another word.
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !(unicode.IsMark(r) && b.Len() > 0 && !gap) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		b.WriteRune(unicode.ToLower(r))
	}
	if b.Len() == 0 {
		return "item"
	}
	return b.String()
}

var (
	criteria = pattern(`(?:^|-)(?:acceptance-(?:(?:\w+-){0,2}criteri(?:a|on)|scenarios?)|acceptancecriteria|criteri(?:a|on)-(?:for|of)-acceptance)(?:-|$)`)
	verbs    = pattern(`(?:^|-)(?:verify|validate|check|confirm|meet|review|test|write|define|update|run|not|non|no|about)-(?:all-|the-)*acceptance-`)
)

// IsCriteria says whether a heading is called acceptance criteria or scenarios, whatever else it says behind that.
func IsCriteria(text string) bool {
	at := criteria().FindStringIndex(Name(text))
	return at != nil && at[0] == 0
}

// HasCriteria says whether a text speaks of them as of what follows, unlike "Verify acceptance criteria".
func HasCriteria(text string) bool {
	name := Slug(text)
	return criteria().MatchString(name) && !verbs().MatchString(name)
}

// Name reduces a heading's text to what it is called: the Slug without a number
// in front: that of "4. Acceptance Criteria" is "acceptance-criteria".
func Name(text string) string {
	return strings.TrimLeft(Slug(text), "0123456789-")
}

// anchors hands out GitHub's heading anchors: how often each was asked for.
// The scheme, its way with "a", "a-1", "a" included, is github-slugger's.
type anchors map[string]int

func (a anchors) next(text string) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(text) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r):
			b.WriteRune(unicode.ToLower(r))
		}
	}
	base := b.String()
	anchor := base
	n, taken := a[base]
	for taken {
		n++
		anchor = base + "-" + strconv.Itoa(n)
		_, taken = a[anchor]
	}
	if anchor != base {
		a[base] = n // the search continues from here, so that equal headings stay cheap
	}
	a[anchor] = 0
	return anchor
}
