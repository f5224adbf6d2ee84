package criteria

import (
	"slices"
	"strings"
	"unicode"
)

// maxPairs bounds how many pairs of a section are compared word by word.
const maxPairs = 100_000

// A match says which criterion of a record is which one of a specification.
type match struct {
	was  *Record
	now  *Specification
	mate []int // of each criterion now the one in the record, -1 if it was added
	back []int // of each criterion in the record the one now, -1 if it is gone
}

func newMatch(was *Record, now *Specification) *match {
	m := &match{was: was, now: now, mate: make([]int, len(now.criteria)), back: make([]int, len(was.Criteria))}
	for i := range m.mate {
		m.mate[i] = -1
	}
	for i := range m.back {
		m.back[i] = -1
	}
	type key struct{ section, text string }
	m.pair(func(i int) any { return key{m.pathWas(i), was.Criteria[i].Sum} }, func(i int) any { return key{m.path(i), now.criteria[i].sum} })
	m.pair(func(i int) any { return was.Criteria[i].Sum }, func(i int) any { return now.criteria[i].sum })
	m.pair(func(i int) any { return key{m.pathWas(i), was.Criteria[i].Text} }, func(i int) any { return key{m.path(i), clip(now.criteria[i].Text)} })
	m.reworded()
	return m
}

func (m *match) path(i int) string    { return m.now.sections[m.now.criteria[i].section].Path }
func (m *match) pathWas(i int) string { return m.was.Sections[m.was.Criteria[i].Section].Path }

// pair makes mates of what is left and has equal keys, in file order.
func (m *match) pair(was, now func(i int) any) {
	left := map[any][]int{}
	for i := range m.back {
		if m.back[i] < 0 {
			left[was(i)] = append(left[was(i)], i)
		}
	}
	for i := range m.mate {
		if m.mate[i] >= 0 {
			continue
		}
		if k := now(i); len(left[k]) > 0 {
			m.mate[i], m.back[left[k][0]] = left[k][0], i
			left[k] = left[k][1:]
		}
	}
}

// A gap is what is left between the same two neighbours of a section.
type gap struct{ was, now []int }

// reworded makes mates of what is left between the same neighbours and is similar, and of what is
// left in a section and is more so.
func (m *match) reworded() {
	type place struct {
		section string
		after   int // criterion in the record that stands before, -1 for none
	}
	gaps := map[place]*gap{}
	at := func(p place) *gap {
		if gaps[p] == nil {
			gaps[p] = &gap{}
		}
		return gaps[p]
	}
	last := map[string]int{} // of each section, the last one that has a mate, plus one
	for i := range m.back {
		if s := m.pathWas(i); m.back[i] >= 0 {
			last[s] = i + 1
		} else {
			g := at(place{s, last[s] - 1})
			g.was = append(g.was, i)
		}
	}
	clear(last)
	for i := range m.mate {
		if s := m.path(i); m.mate[i] >= 0 {
			last[s] = m.mate[i] + 1
		} else {
			g := at(place{s, last[s] - 1})
			g.now = append(g.now, i)
		}
	}
	whole := map[string]*gap{}
	for p, g := range gaps {
		m.similar(g, 0.5)
		if whole[p.section] == nil {
			whole[p.section] = &gap{}
		}
		w := whole[p.section]
		w.was, w.now = append(w.was, g.was...), append(w.now, g.now...)
	}
	for _, w := range whole {
		w.was = slices.DeleteFunc(w.was, func(i int) bool { return m.back[i] >= 0 })
		w.now = slices.DeleteFunc(w.now, func(i int) bool { return m.mate[i] >= 0 })
		m.similar(w, 0.75)
	}
}

// similar makes mates of those in a gap that have more than a part of their words in common, and are
// more similar to each other than to any third.
func (m *match) similar(g *gap, part float64) {
	if len(g.was)*len(g.now) > maxPairs {
		return
	}
	was, now := make([]best, len(g.was)), make([]best, len(g.now))
	texts := make([][]string, len(g.now))
	for j, n := range g.now {
		texts[j] = words(clip(m.now.criteria[n].Text))
	}
	for i, o := range g.was {
		text := words(m.was.Criteria[o].Text)
		for j := range g.now {
			like := similarity(text, texts[j])
			was[i].see(j, like)
			now[j].see(i, like)
		}
	}
	for i, o := range g.was {
		if b := was[i]; b.like > part && b.alone && now[b.with].with == i && now[b.with].alone {
			m.back[o], m.mate[g.now[b.with]] = g.now[b.with], o
		}
	}
}

// A best is what is most similar to something, alone if nothing else is as similar.
type best struct {
	with  int
	like  float64
	alone bool
}

func (b *best) see(with int, like float64) {
	switch {
	case like > b.like:
		*b = best{with, like, true}
	case like == b.like:
		b.alone = false
	}
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) })
}

// similarity is the part of the words of two texts that they have in common, from 0 to 1.
func similarity(a, b []string) float64 {
	if len(a)+len(b) == 0 {
		return 0
	}
	n := make(map[string]int, len(a))
	for _, w := range a {
		n[w]++
	}
	common := 0
	for _, w := range b {
		if n[w] > 0 {
			n[w]--
			common++
		}
	}
	return float64(2*common) / float64(len(a)+len(b))
}
