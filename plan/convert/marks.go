package convert

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// The kinds of a list.
const (
	kindMarkdown = "Markdown"
	kindSpecKit  = "Spec Kit"
	kindKiro     = "Kiro"
	kindOpenSpec = "OpenSpec"
	kindRalphex  = "ralphex"
	kindPRD      = "prd.json"
	kindIssues   = "GitHub issues"
	kindMaster   = "Task Master"
)

var (
	specKitBox  = pattern(`^\**T\d{3,4}\b`)
	kiroBox     = pattern(`^\d+\.[ \t]`)
	numberedBox = pattern(`^\d+\.\d+(?:\.\d+)*[.:]?[ \t]`)
	kiroLine    = pattern(`(?m)^[ \t]*[-*+][ \t]+_Requirements?:`)
	sectionName = pattern(`^\d+\.[ \t]`)
	taskName    = pattern(`(?i)^(?:task|iteration) +\d[\w.]*:`)
)

// kindOf recognises a list by what it has: the tools name their files alike.
func kindOf(src []byte, boxes []found, headings []markdown.Heading) string {
	box := func(has func(f found) bool) bool { return slices.ContainsFunc(boxes, has) }
	heading := func(name *regexp.Regexp) bool {
		return slices.ContainsFunc(headings, func(h markdown.Heading) bool { return name.MatchString(h.Text) })
	}
	parts := box(func(f found) bool { return f.bullet && numberedBox().MatchString(f.text) })
	switch {
	case box(func(f found) bool { return f.star && f.bullet && f.spaced(src) }):
		return kindKiro
	case heading(taskName()):
		return kindRalphex
	case box(func(f found) bool { return specKitBox().MatchString(f.text) }):
		return kindSpecKit
	case kiroLine().Match(src), parts && box(func(f found) bool { return f.bullet && kiroBox().MatchString(f.text) }):
		return kindKiro
	case parts && heading(sectionName()):
		return kindOpenSpec
	}
	return kindMarkdown
}

// A verdict is what a box means: word is "" for a task, else what stands in the plan in
// place of the box, and reason says why it is none.
type verdict struct{ word, reason string }

var (
	cancelled = verdict{"cancelled", "[-] says that it was cancelled"}
	optional  = verdict{"optional", "* says that it is optional, which Kiro leaves out"}
	struck    = verdict{"dropped", "it is struck out"}
	empty     = verdict{"empty", "it has no text"}
	criterion = verdict{"criterion", "it is a criterion for who judges the work, no step of it"}
	outside   = verdict{"criterion", "it stands outside of a task section, where ralphex runs nothing"}
	format    = verdict{"example", "it describes a box, which ralphex does not run"}
	nothing   = verdict{"left out", "all below it is left out"}
)

// meaning is what the mark in a box, the asterisk behind it and strokes through its text
// say in a list of a kind.
func (f found) meaning(kind string) verdict {
	switch f.mark {
	case "x", "X":
		return verdict{}
	case "-":
		if kind != kindKiro {
			return cancelled
		}
	case "~":
		if kind != kindKiro {
			return verdict{"not applicable", "[~] says that it does not apply"}
		}
	case ">":
		return verdict{"deferred", "[>] says that it was put off"}
	case " ", "\t":
		if f.star {
			return optional
		}
	case "/":
	default:
		return verdict{f.mark, "[" + f.mark + "] says neither that it is open nor that it is done"}
	}
	if isStruck(f.text) {
		return struck
	}
	return verdict{}
}

// labelAhead is a number or the like that a text begins with.
var labelAhead = pattern(`^(?:\**(?:T\d{1,4}[a-z]?|[A-Z]{1,6}-?\d+|#\d+|\d+(?:\.\d+)*)[.:)]?\**[ \t]+)?(?:\[[\w ]+\][ \t]*)*`)

// isStruck says whether all of a text is struck out but a number before it, and a remark
// behind it.
func isStruck(text string) bool {
	text = strings.TrimPrefix(text[len(labelAhead().FindString(text)):], "**")
	rest, ok := strings.CutPrefix(text, "~~")
	if !ok {
		return false
	}
	_, rest, ok = strings.Cut(rest, "~~")
	rest = strings.Trim(rest, " \t*.")
	return ok && (rest == "" || strings.IndexAny(rest[:1], "(:-[<") == 0 || strings.HasPrefix(rest, "–") || strings.HasPrefix(rest, "—"))
}

// criteriaName says whether a heading is above criteria, which a loop that takes them for
// tasks never gets done.
func criteriaName(text string) bool {
	switch name := markdown.Name(text); {
	case markdown.IsCriteria(text), strings.HasPrefix(name, "success-criteri"), strings.HasPrefix(name, "definition-of-done"),
		strings.HasPrefix(name, "acceptance-c"), name == "acceptance", strings.HasPrefix(name, "post-completion"), strings.HasPrefix(name, "done-when"),
		strings.HasPrefix(name, "exit-criteri"), strings.HasPrefix(name, "validation-checklist"), strings.HasPrefix(name, "completion-criteri"):
		return true
	}
	return false
}
