package checkpoint

import (
	"cmp"
	"context"
	"slices"

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
	// is nothing.
	Old *files.Fingerprint `json:"-"`
	New *files.Fingerprint `json:"-"`
	// At is the number of a checkpoint that has Old, which may be the one that a preview
	// is for.
	At uint64 `json:"at"`
}

// Why says why a path is left as it is although the target has it otherwise.
type Why string

// The reasons.
const (
	Foreign   Why = "changed by somebody else" // By says who, and since when
	Contested Why = "changed while several tasks, or one that was cut off, were at work"
	Ignored   Why = "ignored" // by the rules at the target, or that a person made since
	Uncovered Why = "only a change of ignore rules shows it"
	First     Why = "there before the first task" // and would be deleted
	Nested    Why = "in another repository"
	Unknown   Why = "not readable"
	Blocked   Why = "in the way is what is kept"
	// Meanwhile is found by Apply: it is not what it was when the plan was made.
	Meanwhile Why = "changed since the plan was made"
	// Denied is found by Apply, of a [Plan.Permitted].
	Denied Why = "the system does not allow it"
)

// Retained is a path that a rewind leaves as it is, and why.
type Retained struct {
	Path string `json:"path"`
	Why  Why    `json:"why"`
	By   string `json:"by,omitempty"` // who: "session task", "session's rewind", "nobody's task", several separated by ", "
	At   uint64 `json:"at,omitempty"` // the checkpoint that has what was changed: the newest with a foreign change
}

// RewindOptions say what a rewind may change.
type RewindOptions struct {
	Paths     []string // these and what is beneath them; nil is everything
	Contested bool     // also what is contested between the session's tasks and others
	Force     bool     // also what somebody else changed; never deletes what is only somebody else's
	// Permitted leaves alone, and reports, what the system does not allow to be changed.
	// Without it that is an error.
	Permitted bool
}

// A Plan is what a rewind does. It is immutable, and a function of the chain up to the
// entry that it was made for, so that it can be made again after a crash.
type Plan struct {
	Changes   []Change   // sorted by Path
	Retained  []Retained // sorted by Path
	Permitted bool
	// Later says that the repository's HEAD or branch is another one than at the target.
	Later bool
	id    string               // of the rewind: names its temporary files
	shut  []*files.Fingerprint // see shutFolders
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

// stages says whether a file or symlink is made under a temporary name first.
func (c *Change) stages() bool {
	return c.New != nil && !c.New.Mode.IsDir() && c.Kind != KindMode
}

// same says whether nothing that a checkpoint keeps differs; nil is nothing.
func same(a, b *files.Fingerprint) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Mode == b.Mode && a.Hash == b.Hash
}

// Plan says what it takes to bring the work tree from now to the target, for the session
// whose line ends with the entry of the number last, 0 for none. now and its tree are the
// entry that was made for the rewind, or for a preview what [Store.Look] returned.
func (s *Store) Plan(ctx context.Context, target, now *Entry, tree *Tree, last uint64, opts RewindOptions) (*Plan, error) {
	p := planner{now: now, opts: opts, differ: map[string]differing{}, changes: map[string]Change{}, retained: map[string]Retained{}}
	if err := p.read(ctx, s, target, tree, last); err != nil {
		return nil, err
	}
	err := paths(tree, s.Tree(target.Root), func(path string, now, was *files.Fingerprint) error {
		p.differ[path] = differing{now, was}
		p.order = append(p.order, path)
		return p.decide(path, now, was)
	})
	if err != nil {
		return nil, err
	}
	p.settle()
	plan := &Plan{Permitted: opts.Permitted, Later: target.Git != now.Git, id: now.ID.String()}
	for _, c := range p.changes {
		plan.Changes = append(plan.Changes, c)
	}
	for _, k := range p.retained {
		plan.Retained = append(plan.Retained, k)
	}
	slices.SortFunc(plan.Changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(plan.Retained, func(a, b Retained) int { return cmp.Compare(a.Path, b.Path) })
	plan.shut, err = shutFolders(plan.Changes, func(path string) (*files.Fingerprint, error) {
		f, _, err := tree.Find(path)
		return f, err
	})
	return plan, err
}
