package carry

import (
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan/markdown"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// taskIDs are the IDs of tasks that become others. An ID of a plan's task is made of the names
// of the tasks above it and of its own, so a credential in a name is in IDs as well, in small
// letters. Such a part of an ID is made again of the redacted name, as a redacted plan has it.
type taskIDs struct {
	parts map[string]string // the new last part of an ID whose task has a credential in its name
	as    map[string]string // the IDs that become others
	taken map[string]bool   // what they become
}

const (
	maxTaskID   = 1000 // what stays of an ID with a credential in it, in bytes
	maxTaskPart = 64   // likewise of a part that is made again
	minSlug     = 8    // a shorter part is no credential, in bytes
	maxSlugs    = 256  // how many are looked for in all texts
)

// learn reads the tasks in an object of ours: an ID may stand before its task's name.
func (t *texts) learn(s *shape) {
	var id, name string
	t.r.Object(func(key string) {
		switch {
		case s.task && key == "id":
			id = t.r.Text()
		case s.task && key == "name":
			name = t.r.Text()
		case s.inner[key] != nil:
			t.learn(s.inner[key])
		case s.lists[key] != nil:
			t.r.Array(func() { t.learn(s.lists[key]) })
		default:
			t.r.Value()
		}
	})
	if hidden, n := t.Redact.String(name); n > 0 && madeOf(lastPart(id), markdown.Slug(name)) && t.tasks.parts[id] == "" {
		if t.tasks.parts == nil {
			t.tasks.parts = map[string]string{}
		}
		t.tasks.parts[id] = clipped(markdown.Slug(hidden), maxTaskPart)
	}
}

// slugsIn returns the parts of IDs that are made of names with a credential. Prompts and messages
// name tasks and headings so.
func slugsIn(st *session.State, r *redact.Redactor) (all []string) {
	for task := range st.All() {
		if _, n := r.String(task.Name); n == 0 {
			continue
		}
		part := lastPart(task.ID)
		if len(all) < maxSlugs && len(part) >= minSlug && madeOf(part, markdown.Slug(task.Name)) {
			all = append(all, part)
		}
	}
	return all
}

func lastPart(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// madeOf reports whether a part of an ID is the begin of a slug, perhaps with a number behind it.
func madeOf(part, slug string) bool {
	plain := part
	if i := strings.LastIndexByte(part, '-'); i > 0 && strings.Trim(part[i+1:], "0123456789") == "" {
		plain = part[:i]
	}
	return part != "" && (strings.HasPrefix(slug, part) || strings.HasPrefix(slug, plain))
}

func clipped(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }

// idsOfTasks writes an ID of a task, or a list of them. An ID stays as it is, unless there is a
// credential in it.
func (t *texts) idsOfTasks(value string) ([]byte, error) {
	if _, n := t.Redact.String(value); n == 0 && len(t.tasks.parts) == 0 {
		return []byte(value), nil
	}
	r := strictjson.NewReader([]byte(value))
	if value[0] != '[' {
		return quoted(t.taskID(r.Text())), r.Err()
	}
	all := []string{}
	r.Array(func() { all = append(all, t.taskID(r.Text())) })
	if r.Err() != nil {
		return nil, r.Err()
	}
	return strictjson.Marshal(all)
}

// taskID returns what takes the place of the ID of a task: the same one at each place, and of
// each task another.
func (t *texts) taskID(id string) string {
	if as, known := t.tasks.as[id]; known {
		return as
	}
	as := id
	if len(t.tasks.parts) > 0 {
		i := strings.LastIndexByte(id, '/')
		as = id[i+1:]
		if part := t.tasks.parts[id]; part != "" {
			as = part
		}
		if i >= 0 {
			as = t.taskID(id[:i]) + "/" + as
		}
	}
	as, _ = t.Redact.String(as)
	if as == id {
		return id
	}
	as = clipped(as, maxTaskID)
	free := as
	for n := 2; t.tasks.taken[free]; n++ {
		free = as + "-" + strconv.Itoa(n)
	}
	if t.tasks.as == nil {
		t.tasks.as, t.tasks.taken = map[string]string{}, map[string]bool{}
	}
	t.tasks.as[id], t.tasks.taken[free] = free, true
	return free
}
