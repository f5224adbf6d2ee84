package convert

import (
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/plan"
)

// targets returns, by label, what can be waited for in the plan of the list: items, and
// headings that are components.
func (l *list) targets(p *plan.Plan) map[string][]target {
	all := map[string][]target{}
	add := func(label string, t target) {
		if label != "" {
			all[label] = append(all[label], t)
		}
	}
	tasks := p.Tasks()
	components := map[string]int{} // by ID, the position in tasks
	i := 0
	ends := l.ends()
	headings := map[int]bool{}
	for n, t := range tasks {
		if t.Box < 0 {
			components[t.ID] = n
			continue
		}
		for _, label := range l.labels[i] {
			add(label, target{t.ID, i, ends[i], false})
		}
		if h := l.items[i].Heading; t.Component != "" && h >= 0 && l.items[i].Parent < 0 && !headings[h] {
			headings[h] = true
			if c := tasks[components[t.Component]]; c.Name == l.headings[h].Text {
				add(labelOf(l.headings[h].Raw), target{c.ID, i, l.lastUnder(h, i, ends), true})
			}
		}
		i++
	}
	return all
}

// ends returns for each item the last one that is nested in it, or itself.
func (l *list) ends() []int {
	ends := make([]int, len(l.items))
	for i := len(l.items) - 1; i >= 0; i-- {
		ends[i] = max(ends[i], i)
		if p := l.items[i].Parent; p >= 0 {
			ends[p] = max(ends[p], ends[i])
		}
	}
	return ends
}

// lastUnder returns the last of the items that stand directly under a heading.
func (l *list) lastUnder(heading, first int, ends []int) int {
	last := first
	for i := first; i < len(l.items) && l.items[i].Heading == heading; i = ends[i] + 1 {
		last = ends[i]
	}
	return last
}

// cut takes out what would make tasks wait for each other for ever: of what is on a circle,
// that which points at something that does not stand before the task as a whole. Without it
// every way leads towards the beginning of the file, so no circle is left.
func (l *list) cut(waits [][]target) (notes []plan.Remark) {
	behind := func(i int, t target) bool { return t.last >= i }
	if !slices.ContainsFunc(l.waitsOf(waits), func(w wait) bool { return behind(w.item, w.target) }) {
		return nil
	}
	g := l.graph(waits)
	circle := g.circles()
	for i := range waits {
		waits[i] = slices.DeleteFunc(waits[i], func(t target) bool {
			if !behind(i, t) || circle[start(i)] != circle[g.done[t]] {
				return false
			}
			notes = append(notes, plan.Remark{Line: l.items[i].Line, Text: fmt.Sprintf("it depends on %s, which cannot be done before it is: the order is left out", t.id)})
			return true
		})
	}
	return notes
}

type wait struct {
	item int
	target
}

func (l *list) waitsOf(waits [][]target) (all []wait) {
	for i, w := range waits {
		for _, t := range w {
			all = append(all, wait{i, t})
		}
	}
	return all
}

// A graph has two nodes for each item, its start and its end, and one for the end of each
// component. An edge leads from a node to what must come before it.
type graph struct {
	edges [][]int
	done  map[target]int // the node of a target's end
}

func start(item int) int { return 2 * item }

func (l *list) graph(waits [][]target) graph {
	g := graph{make([][]int, 2*len(l.items)), map[target]int{}}
	edge := func(from, to int) { g.edges[from] = append(g.edges[from], to) }
	for i, it := range l.items {
		edge(start(i)+1, start(i))
		if it.Parent >= 0 {
			edge(start(i), start(it.Parent))
			edge(start(it.Parent)+1, start(i)+1)
		}
	}
	ends := l.ends()
	for _, w := range l.waitsOf(waits) {
		node, known := g.done[w.target]
		if !known {
			if node = start(w.first) + 1; w.heading {
				node = len(g.edges)
				g.edges = append(g.edges, nil)
				for i := w.first; i <= w.last; i = ends[i] + 1 {
					edge(node, start(i)+1)
				}
			}
			g.done[w.target] = node
		}
		edge(start(w.item), node)
	}
	return g
}

// circles returns for each node the number of the circles that it is on with others: nodes
// with the same number can be reached from each other (Tarjan, without recursion: a list may
// be a chain of a million).
func (g graph) circles() []int {
	n := len(g.edges)
	index, low, of := make([]int, n), make([]int, n), make([]int, n)
	next := make([]int, n)
	var stack, path []int
	count := 0
	for root := range n {
		if index[root] > 0 {
			continue
		}
		path = append(path, root)
		for len(path) > 0 {
			v := path[len(path)-1]
			if index[v] == 0 {
				count++
				index[v], low[v] = count, count
				stack = append(stack, v)
			}
			if next[v] < len(g.edges[v]) {
				w := g.edges[v][next[v]]
				next[v]++
				if index[w] == 0 {
					path = append(path, w)
				} else if of[w] == 0 {
					low[v] = min(low[v], index[w])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				up := path[len(path)-1]
				low[up] = min(low[up], low[v])
			}
			if low[v] == index[v] {
				for {
					w := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					of[w] = v + 1
					if w == v {
						break
					}
				}
			}
		}
	}
	return of
}
