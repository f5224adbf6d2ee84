package plan

// Closure returns the boxes that have to change with one: ticking a task ticks
// everything beneath it, and every parent above whose last open leaf that was;
// unticking one unticks everything beneath it and the parents above. Components
// have no box and are not in the result, but ticking one ticks its items. An
// unknown ID gives an empty result.
func Closure(p *Plan, id string, ticked bool) map[string]bool {
	want := map[string]bool{}
	t, ok := p.Task(id)
	if !ok {
		return want
	}
	beneath := []Task{t}
	for len(beneath) > 0 {
		last := beneath[len(beneath)-1]
		beneath = beneath[:len(beneath)-1]
		if last.Box >= 0 {
			want[last.ID] = ticked
		}
		for _, c := range last.Children {
			child, _ := p.Task(c)
			beneath = append(beneath, child)
		}
	}
	for t.Parent != "" {
		t, _ = p.Task(t.Parent)
		if t.Box < 0 || (ticked && !p.allTicked(t, want)) {
			break
		}
		want[t.ID] = ticked
	}
	return want
}

// allTicked says whether every leaf beneath a task is ticked once want holds. A
// parent's own box does not count: it follows its children's.
func (p *Plan) allTicked(t Task, want map[string]bool) bool {
	for _, c := range t.Children {
		child, _ := p.Task(c)
		ticked, changed := want[c]
		switch {
		case changed && !ticked, !changed && len(child.Children) == 0 && !child.Checked:
			return false
		case !changed && len(child.Children) > 0 && !p.allTicked(child, want):
			return false
		}
	}
	return true
}
