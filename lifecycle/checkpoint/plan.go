package checkpoint

import (
	"cmp"
	"path"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
)

// A Kind is what a rewind does to a path.
type Kind string

// The kinds.
const (
	KindCreate    Kind = "create"    // nothing is there
	KindOverwrite Kind = "overwrite" // another content or type is there
	KindDelete    Kind = "delete"
	KindMode      Kind = "mode"     // only the permissions differ
	KindRetarget  Kind = "retarget" // a symlink with another target is there
)

// A Change is one step of a [Plan].
type Change struct {
	Kind Kind   `json:"kind"`
	Path string `json:"path"`
	// Old is what stands when the plan is made, New what is to stand: nil where there
	// is nothing. Both are shared with the snapshots and not to be written.
	Old *files.Fingerprint `json:"-"`
	New *files.Fingerprint `json:"-"`
}

// Why says why a path is left as it is although the target has it otherwise.
type Why string

// The reasons.
const (
	Changed Why = "changed since the last checkpoint"
	Gone    Why = "removed since the last checkpoint"
	Moved   Why = "moved since the last checkpoint"
	Unknown Why = "ignored or not readable now"
	Blocked Why = "in the way is what is kept"
	// Meanwhile is found by Apply: it is not what it was when the plan was made.
	Meanwhile Why = "changed since the plan was made"
	// Denied is found by Apply, of a [Plan.Permitted].
	Denied Why = "the system does not allow it"
)

// A Kept is a path that a rewind leaves alone.
type Kept struct {
	Path string `json:"path"`
	Why  Why    `json:"why"`
	To   string `json:"to,omitempty"` // of Moved: where it is
}

// A Plan is what a rewind does. It is immutable, and a function of what NewPlan was
// given, so that it can be made again after a crash.
type Plan struct {
	Changes []Change // sorted by Path
	Kept    []Kept   // sorted by Path

	// Permitted leaves alone, and reports, what the system does not allow to be changed.
	// Without it that is an error. NewPlan leaves it out.
	Permitted bool

	at time.Time // of the look at the tree: what was modified about then may have been modified again
}

// Bytes is how many bytes of content are written, for the room that it takes.
func (p *Plan) Bytes() (n int64) {
	for _, c := range p.Changes {
		if c.stages() && c.New.Mode.IsRegular() {
			n += c.New.Size
		}
	}
	return n
}

// stages says whether a file or symlink is made beside its place first.
func (c *Change) stages() bool {
	return c.New != nil && !c.New.Mode.IsDir() && c.Kind != KindMode
}

// NewPlan says what it takes to bring a tree that is now to the target. last is
// what the loop last knew, its newest checkpoint: what is not so any more is kept,
// unless force is set. Who takes a checkpoint before a rewind passes that as now, and
// as last too if everything in the tree is to count as the loop's, as after a task
// that was cut off.
func NewPlan(target, last, now *files.Snapshot, force bool) *Plan {
	p := planner{target: target, last: last, now: now, force: force, changes: map[string]Change{}, kept: map[string]Kept{}}
	moved := map[string]string{} // since last: to, by from
	for _, c := range files.Compare(last, now) {
		if c.Kind == files.Moved {
			moved[c.From] = c.Path
		}
	}
	for _, file := range union(target, last, now) {
		p.decide(file, moved)
	}
	if force {
		p.undoMoves(moved)
	}
	p.settle()
	plan := &Plan{at: now.At}
	for _, c := range p.changes {
		plan.Changes = append(plan.Changes, c)
	}
	for _, k := range p.kept {
		plan.Kept = append(plan.Kept, k)
	}
	slices.SortFunc(plan.Changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(plan.Kept, func(a, b Kept) int { return cmp.Compare(a.Path, b.Path) })
	return plan
}

type planner struct {
	target, last, now *files.Snapshot
	force             bool
	changes           map[string]Change
	kept              map[string]Kept
}

// union is the paths of all snapshots, sorted.
func union(all ...*files.Snapshot) []string {
	n := 0
	for _, s := range all {
		n += len(s.Files)
	}
	paths := make([]string, 0, n)
	for _, s := range all {
		for i := range s.Files {
			paths = append(paths, s.Files[i].Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// same says whether nothing that a checkpoint keeps differs; nil is nothing.
func same(a, b *files.Fingerprint) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Mode == b.Mode && a.Hash == b.Hash
}

func (p *planner) decide(path string, moved map[string]string) {
	was, loop, now := p.target.Find(path), p.last.Find(path), p.now.Find(path)
	if same(was, now) && (now != nil || p.now.Covers(path)) || !p.target.Covers(path) {
		return
	}
	if now == nil && !p.now.Covers(path) {
		if was != nil {
			p.keep(path, Unknown)
		}
		return
	}
	foreign := !same(loop, now) && !p.force
	switch {
	case was == nil && loop == nil: // never the loop's: not even with force
	case foreign && now == nil && moved[path] != "":
		p.kept[path] = Kept{Path: path, Why: Moved, To: moved[path]}
	case foreign && now == nil:
		p.keep(path, Gone)
	case foreign:
		p.keep(path, Changed)
	default:
		p.changes[path] = change(path, now, was)
	}
}

func (p *planner) keep(path string, why Why) { p.kept[path] = Kept{Path: path, Why: why} }

// drop takes a change back because of what is kept.
func (p *planner) drop(path string) {
	delete(p.changes, path)
	p.keep(path, Blocked)
}

func change(path string, from, to *files.Fingerprint) Change {
	c := Change{Kind: KindOverwrite, Path: path, Old: from, New: to}
	switch {
	case from == nil:
		c.Kind = KindCreate
	case to == nil:
		c.Kind = KindDelete
	case from.Mode.Type() == to.Mode.Type() && from.Hash == to.Hash:
		c.Kind = KindMode
	case from.Target != "" && to.Target != "":
		c.Kind = KindRetarget
	}
	return c
}

// undoMoves removes what a move since the last checkpoint left at another path,
// where the file is brought back to its own: it must not be there twice.
func (p *planner) undoMoves(moved map[string]string) {
	for from, to := range moved {
		back, ok := p.changes[from]
		now := p.now.Find(to)
		if ok && back.Kind == KindCreate && now != nil && p.target.Covers(to) && p.target.Find(to) == nil {
			p.changes[to] = change(to, now, nil)
			p.undoFolders(path.Dir(to))
		}
	}
}

// undoFolders removes a folder that a move made, and those above it; settle lets
// stand what is not empty.
func (p *planner) undoFolders(dir string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if now := p.now.Find(dir); now != nil && p.target.Find(dir) == nil && p.last.Find(dir) == nil {
			p.changes[dir] = change(dir, now, nil)
		}
	}
}

// settle makes the changes fit each other and what stays: a folder that something
// is created in is created as well, and what cannot be done because of a path that
// is kept is kept too.
func (p *planner) settle() {
	holds := map[string]bool{} // folders in which something stays
	for i := range p.now.Files {
		path := p.now.Files[i].Path
		if c, ok := p.changes[path]; !ok || c.New != nil {
			markAbove(holds, path)
		}
	}
	for i := range p.now.Skipped {
		markAbove(holds, p.now.Skipped[i].Path)
	}
	paths := make([]string, 0, len(p.changes))
	for path := range p.changes {
		paths = append(paths, path)
	}
	slices.Sort(paths) // folders before what is in them
	for _, path := range paths {
		c := p.changes[path]
		switch {
		case c.Old != nil && c.Old.Mode.IsDir() && holds[path] && c.New == nil:
			delete(p.changes, path) // it stays for what is in it
		case c.Old != nil && c.Old.Mode.IsDir() && holds[path] && !c.New.Mode.IsDir():
			p.drop(path)
		case c.New != nil && !p.reachable(path):
			p.drop(path)
		}
	}
}

func markAbove(set map[string]bool, file string) {
	for dir := path.Dir(file); dir != "." && !set[dir]; dir = path.Dir(dir) {
		set[dir] = true
	}
}

// reachable says whether the folders above a path are or will be there, and adds
// those that are to be created: somebody removed them since, with what was in them.
func (p *planner) reachable(file string) bool {
	for i, r := range file {
		if r != '/' {
			continue
		}
		dir := file[:i]
		if c, ok := p.changes[dir]; ok {
			if c.New == nil || !c.New.Mode.IsDir() {
				return false
			}
			continue
		}
		now, was := p.now.Find(dir), p.target.Find(dir)
		switch {
		case now != nil && !now.Mode.IsDir():
			return false
		case now == nil && was != nil && was.Mode.IsDir():
			p.changes[dir] = change(dir, nil, was)
			delete(p.kept, dir)
		}
	}
	return true
}
