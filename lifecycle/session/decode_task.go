package session

import "slices"

// taskKeys are the members of a task that the decoder knows.
var taskKeys = []string{"id", "kind", "name", "state", "dependsOn", "box", "attempts", "lastError", "startedAt", "completedAt", "log", "children"}

// children reads the tasks of a parent, and everything beneath them, into
// d.tasks, and returns their IDs. Parents and children name each other by
// construction, so all that is left to check in the end is that no ID stands twice.
func (d *decoder) children(parent string, depth int) []string {
	base := len(d.ids)
	d.Array(func() {
		if depth > MaxTaskDepth {
			d.Fail("tasks are nested more than %d levels deep", MaxTaskDepth)
			return
		}
		id := d.task(parent, depth)
		d.ids = append(d.ids, id)
	})
	if len(d.ids) == base {
		return nil
	}
	ids := slices.Clone(d.ids[base:])
	d.ids = d.ids[:base]
	return ids
}

func (d *decoder) task(parent string, depth int) string {
	t := Task{Parent: parent}
	first := d.tasks.Len()
	orphans := false // children came before the ID, as where keys were sorted
	d.Object(func(key string) {
		switch {
		case key == "children":
			orphans = t.ID == ""
			t.Children = d.children(t.ID, depth+1)
		case !d.taskMember(&t, key):
			t.Extra = append(t.Extra, Field{key, d.raw()})
		}
	})
	if d.Reader.Err() != nil {
		return ""
	}
	if err := t.validate(); err != nil {
		d.Fail("%v", err)
		return ""
	}
	for i := first; orphans && i < d.tasks.Len(); i++ {
		if child := d.tasks.At(i); child.Parent == "" {
			child.Parent = t.ID // those further down have theirs by now
		}
	}
	d.progress.count(&t, 1)
	d.tasks.Add(t.ID, t)
	return t.ID
}

// taskMember reads a member of a task, but not its children, and says whether it
// is one.
func (d *decoder) taskMember(t *Task, key string) bool {
	switch key {
	case "id":
		t.ID = d.Text()
	case "kind":
		t.Kind = Kind(d.Text())
	case "name":
		t.Name = d.Text()
	case "state":
		t.State = TaskState(d.Text())
	case "dependsOn":
		t.DependsOn = d.strs()
	case "box":
		t.Box = d.box()
	case "attempts":
		t.Attempts = d.int()
	case "lastError":
		t.LastError = d.Text()
	case "startedAt":
		t.StartedAt = d.time()
	case "completedAt":
		t.CompletedAt = d.time()
	case "log":
		d.Array(func() { t.Log = append(t.Log, d.attempt()) })
	default:
		return false
	}
	return true
}

func (d *decoder) box() Box {
	switch s := d.Text(); s {
	case boxNames[BoxOpen]:
		return BoxOpen
	case boxNames[BoxTicked]:
		return BoxTicked
	default:
		d.Fail("%q is no box", s)
		return BoxNone
	}
}

func (d *decoder) attempt() (a Attempt) {
	d.Object(func(key string) {
		switch key {
		case "number":
			a.Number = d.int()
		case "startedAt":
			a.StartedAt = d.time()
		case "endedAt":
			a.EndedAt = d.time()
		case "exit":
			a.Exit = d.int()
		case "signal":
			a.Signal = d.Text()
		case "error":
			a.Error = d.Text()
		case "artifacts":
			a.Artifacts = d.strs()
		default:
			d.Raw()
		}
	})
	return a
}

// iteration reads the iteration that must have the number n.
func (d *decoder) iteration(n int) Iteration {
	it := d.anyIteration()
	if it.Number != n {
		d.Fail("iteration %d stands at place %d", it.Number, n)
	}
	return it
}

func (d *decoder) anyIteration() (it Iteration) {
	d.Object(func(key string) {
		switch key {
		case "number":
			it.Number = d.int()
		case "task":
			it.Task = d.Text()
		case "attempt":
			it.Attempt = d.int()
		case "startedAt":
			it.StartedAt = d.time()
		case "duration":
			it.Duration = d.duration()
		case "inputTokens":
			it.InputTokens = d.Int()
		case "outputTokens":
			it.OutputTokens = d.Int()
		case "cachedTokens":
			it.CachedTokens = d.Int()
		case "contextWindow":
			it.ContextWindow = d.Int()
		case "premiumRequests":
			it.PremiumRequests = d.Float()
		case "costUSD":
			it.CostUSD = d.Float()
		case "model":
			it.Model = d.Text()
		case "turns":
			it.Turns = d.int()
		default:
			d.Raw()
		}
	})
	if err := it.validate(); err != nil {
		d.Fail("%v", err)
	}
	return it
}
