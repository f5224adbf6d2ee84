package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/plan"
)

// A ref is what a task says that it depends on.
type ref struct {
	line  int
	label string
}

var (
	// ahead is the number or the like that a task or heading begins with.
	ahead = pattern(`^(?:\[[^\]\[]{1,24}\][ \t]*)*\**(T\d{1,4}[a-zA-Z]?|[A-Z][A-Z0-9]{0,7}-\d+|US\d+(?:\.\d+)?|#\d+|\d+(?:\.\d+)*|(?i:task|iteration|phase|story|step)[ \t]+\d+(?:\.\d+)*)(?:[.:)\]*]|[ \t]|$)`)
	// depends is what stands before what a task depends on.
	depends = pattern(`(?i)\b(?:depends?(?:[ _-]?on)?|dependenc(?:y|ies)|deps|(?:is )?blocked[ _-]?by)\b[ \t]*[:=]?[ \t]*`)
	// denied stands before depends where nothing is waited for.
	denied = pattern(`(?i)(?:\bnot|n[’']t|\bno|\bnever)(?:[ \t]+(?:be|been|is|longer))*[ \t]+$`)
	// named and numbered are one of them, or a range. A number alone must end there.
	named    = pattern(`^((?i:tasks?|issues?|stor(?:y|ies)|iteration|step|phase)[ \t]+)?(T\d{1,4}[a-zA-Z]?|[A-Z][A-Z0-9]{0,7}-\d+|US\d+(?:\.\d+)?|#\d+)\b(?:[ \t]*(?:-|–|—|\.\.|to|through)[ \t]*(T?\d{1,4}|#\d+)\b)?`)
	numbered = pattern(`^((?i:tasks?|issues?|stor(?:y|ies)|iteration|step|phase)[ \t]+)?(\d+(?:\.\d+)*)(?:[ \t]*(?:-|–|—|\.\.|to|through)[ \t]*(\d+(?:\.\d+)*))?(?:[ \t]*(?:[,;&+/)\]:]|and\b|$)|\.(?:[ \t]|$))`)
	// between stands between two of them.
	between = pattern(`^[ \t]*(?:[,;&+/]|and\b)?[ \t]*(?:and\b[ \t]*)?`)
	// plainMarks are marks of emphasis and code.
	plainMarks = strings.NewReplacer("*", "", "`", "", "_Depends", "Depends", "_depends", "depends", "_Blocked", "Blocked", "_Dep", "Dep", "_", "")
)

// maxRange bounds what one task depends on, and a range such as T001-T040; maxAfter how many
// tasks one waits for, and maxWaits how many all together: their IDs stand in the plan.
const maxRange, maxAfter, maxWaits = 100, 64, 100_000

// labelOf returns what a tool calls the task with a text.
func labelOf(text string) string {
	if m := ahead().FindStringSubmatch(text); m != nil {
		return label(m[1])
	}
	return ""
}

// label is a label as it is compared.
func label(s string) string { return strings.ToUpper(oneLine(s)) }

// sections are the words before the number of a heading.
var sections = []string{"TASK ", "ITERATION ", "STEP ", "PHASE ", "STORY "}

// lookUp returns what has a label: 3 may be said of Task 3, and the other way round.
func lookUp(targets map[string][]target, label string) []target {
	if found := targets[label]; len(found) > 0 {
		return found
	}
	if _, number, ok := strings.Cut(label, " "); ok {
		return targets[number]
	}
	for _, word := range sections {
		if found := targets[word+label]; len(found) > 0 {
			return found
		}
	}
	return nil
}

// refs returns what the lines of a task, the first of which has a number, say that it
// depends on.
func refs(line int, text string) (all []ref) {
	for s := range strings.Lines(text) {
		s = plainMarks.Replace(strings.TrimRight(s, "\r\n"))
		for _, m := range depends().FindAllStringIndex(s, -1) {
			if denied().MatchString(s[:m[0]]) {
				continue
			}
			rest := s[m[1]:]
			for len(all) < maxRange {
				m := named().FindStringSubmatch(rest)
				if m == nil {
					m = numbered().FindStringSubmatch(rest)
				}
				if m == nil {
					break
				}
				whole := len(m[1]) + len(m[2])
				if m[3] != "" {
					whole += strings.Index(m[0][whole:], m[3]) + len(m[3])
				}
				for _, l := range spread(m[2], m[3]) {
					word := strings.TrimSuffix(strings.TrimSuffix(label(m[1]), "S"), "IE")
					all = append(all, ref{line, label(word + " " + l)})
				}
				rest = rest[whole:]
				rest = rest[len(between().FindString(rest)):]
			}
		}
	}
	return all
}

// digits are the last number of a label.
var digits = pattern(`\d+$`)

// spread returns the labels from one to another.
func spread(from, to string) []string {
	first, last := digits().FindString(from), digits().FindString(to)
	a, _ := strconv.Atoi(first)
	b, _ := strconv.Atoi(last)
	if to == "" || first == "" || b <= a || b-a > maxRange {
		if to == "" {
			return []string{from}
		}
		return []string{from, to}
	}
	all := make([]string, 0, b-a+1)
	for n := a; n <= b; n++ {
		all = append(all, fmt.Sprintf("%s%0*d", strings.TrimSuffix(from, first), len(first), n))
	}
	return all
}

// A target is what may be waited for.
type target struct {
	id          string
	first, last int // the items that it is made of
	heading     bool
}

// order makes `after:` of what the items depend on. p is the plan of the list without.
func (l *list) order(p *plan.Plan) (notes []plan.Remark) {
	targets := l.targets(p)
	waits := make([][]target, len(l.items))
	all := 0
	for i, w := range l.waits {
		for n, r := range w {
			if slices.Contains(w[:n], r) {
				continue
			}
			found := lookUp(targets, r.label)
			if len(found) == 0 {
				notes = append(notes, plan.Remark{Line: r.line, Text: fmt.Sprintf("it depends on %s, which is no task of the plan: what it says stays in its text", r.label)})
			}
			for _, t := range found {
				if slices.Contains(waits[i], t) {
					continue
				}
				if len(waits[i]) == maxAfter || all == maxWaits {
					notes = append(notes, plan.Remark{Line: r.line, Text: "it depends on too many tasks: the rest stays in its text"})
					break
				}
				waits[i] = append(waits[i], t)
				all++
			}
		}
	}
	notes = append(notes, l.cut(waits)...)
	tasks := slices.DeleteFunc(p.Tasks(), func(t plan.Task) bool { return t.Box < 0 })
	for i, w := range waits {
		var ids []string // that the comments of the source do not name
		for _, t := range w {
			if !slices.Contains(ids, t.id) && !slices.Contains(tasks[i].After, t.id) {
				ids = append(ids, t.id)
			}
		}
		if len(ids) > 0 {
			l.items[i].Raw += " <!-- after: " + strings.Join(ids, ", ") + " -->"
		}
	}
	return notes
}
