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
	KindCreate    Kind = "create"    // there is nothing now
	KindOverwrite Kind = "overwrite" // there is another content or type
	KindDelete    Kind = "delete"
	KindMode      Kind = "mode"     // only the permissions differ
	KindRetarget  Kind = "retarget" // there is a symlink with another target
	// What is hidden is moved away with all beneath it, and moved back.
	KindAway Kind = "move-away"
	KindBack Kind = "move-back"
)

// A Change is one step of a [Plan].
type Change struct {
	Kind Kind   `json:"kind"`
	Path string `json:"path"`
	// Old is what is there when the plan is made, New what the plan wants; nil means nothing.
	Old *files.Fingerprint `json:"-"`
	New *files.Fingerprint `json:"-"`
	// At is the number of a checkpoint that has Old. It may be the number of the entry that Look
	// returned.
	At uint64 `json:"at"`
}

// Why is why a path is left as it is although it differs from the target.
type Why string

// The reasons.
const (
	Foreign   Why = "changed by somebody else" // By says who
	Apart     Why = "of another history than the imported checkpoint"
	Contested Why = "changed while several tasks, or one that was cut off, were at work"
	Ignored   Why = "ignored" // by the rules at the target, or that a person made since
	Uncovered Why = "only a change of ignore rules shows it"
	First     Why = "there before the first task"                         // and would be deleted
	Older     Why = "older than the task, and in no checkpoint before it" // and would be deleted
	Nested    Why = "in another repository"
	Mounted   Why = "something was mounted or unmounted there since"
	Unknown   Why = "not readable"
	TooLarge  Why = "too large to be stored" // more than 4 GiB
	Unsettled Why = "its folder changed while it was looked at"
	Blocked   Why = "in the way is what is kept"
	// Unstored, Fixed and Lost are for what only rules of a task hide.
	Unstored Why = "not stored, because a rule hides it that a task wrote"
	Fixed    Why = "it cannot be moved away as a whole"
	Lost     Why = "a rewind moved it to .lopen/moved, and it is not there any more as it was"
	// Meanwhile is set by Apply: the path changed after the plan was made.
	Meanwhile Why = "changed since the plan was made"
	// Denied is set by Apply if [Plan.Permitted] is set.
	Denied Why = "the system does not allow it"
	// InUse is set by Apply unless [Plan.InUse] is set. By says who has it open, if that is known.
	InUse Why = "open for writing"
	// Together is set by Apply. By is the file that stays.
	Together Why = "of the same database as a file that stays"
	Unasked  Why = "not among the paths to bring back"
	// Unsaved is for who decides by [RewindOptions.Take].
	Unsaved Why = "changed here, and neither committed nor known to the session"
)

// Retained is a path that a rewind leaves as it is, and why.
type Retained struct {
	Path string `json:"path"`
	Why  Why    `json:"why"`
	By   string `json:"by,omitempty"` // who: "session task", "session's rewind", "nobody's task", several separated by ", "; for InUse "program, PID number"
	At   uint64 `json:"at,omitempty"` // number of the checkpoint after the newest foreign change
	// Cause is why the system does not allow the change, and what lets it; set with Denied.
	Cause string `json:"cause,omitempty"`
}

// Reason returns why the path stays, and who has to do with it.
func (k Retained) Reason() string {
	switch {
	case k.Why == InUse && k.By != "":
		return "open in " + k.By
	case k.Why == Together:
		return "with " + k.By + ", which stays"
	case k.By != "":
		return string(k.Why) + ": " + k.By
	}
	return string(k.Why)
}

// RewindOptions say what a rewind may change.
type RewindOptions struct {
	Paths     []string // these paths and everything beneath them; nil means all
	Contested bool     // also paths that are contested between the session's tasks and others
	Force     bool     // also paths that others changed or have open; paths that only others made are not deleted
	// Permitted makes Apply retain and report paths that the system does not allow to be
	// changed. Without it such a path is an error.
	Permitted bool
	// Take, unless nil, decides in the place of what is known of the chain: it returns why a path
	// that differs is left as it is, or "". Ignored paths and those that a tree could not record
	// are left in any case.
	Take func(path string, now, was *files.Fingerprint) (Why, error)
}

// A Plan is what a rewind does. It is immutable. It depends only on the chain up to the entry
// that it was made for, and on names that no checkpoint has in folders that it would remove.
// Apply changes neither, so that the plan can be made again after a crash.
type Plan struct {
	Changes   []Change   // sorted by Path
	Retained  []Retained // sorted by Path
	Permitted bool
	InUse     bool // Apply also takes what somebody has open for writing
	// Later says that the repository's HEAD or branch differs from that at the target.
	Later   bool
	mounts  map[string]bool      // the mount points that may be crossed
	volumes map[string]string    // at these, see [Entry.Volumes]
	id      string               // of the rewind's entry; its temporary names are derived from it
	shut    []*files.Fingerprint // see shutFolders
	takes   string               // the id of the plan that this one takes back; else ""
}

// Bytes returns the number of bytes of content that Apply will write.
func (p *Plan) Bytes() (n int64) {
	for _, c := range p.Changes {
		if c.stages() && c.New.Mode.IsRegular() {
			n += c.New.Size
		}
	}
	return n
}

// retains reports whether the plan leaves a path as it is, and names it.
func (p *Plan) retains(path string) bool {
	return slices.ContainsFunc(p.Retained, func(k Retained) bool { return k.Path == path })
}

// stages reports whether a file or symlink is first made under a temporary name.
func (c *Change) stages() bool {
	return c.New != nil && !c.New.Mode.IsDir() && c.Kind != KindMode && !c.moves()
}

// moves reports whether what is hidden is moved away or back.
func (c *Change) moves() bool { return c.Kind == KindAway || c.Kind == KindBack }

// same reports whether two fingerprints are equal in all that a checkpoint records; nil means
// no file.
func same(a, b *files.Fingerprint) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Mode == b.Mode && a.Hash == b.Hash
}

// Plan plans a rewind of the work tree from now to the target, for the session whose line ends
// with entry number last; 0 means none. now and its tree are those of the entry that was made
// before the rewind or, for a preview, what [Store.Look] returned. The target may be one that
// [Store.FindOther] returned: then every path that differs needs Force, and none is deleted.
func (s *Store) Plan(ctx context.Context, target, now *Entry, tree *Tree, last uint64, opts RewindOptions) (*Plan, error) {
	if target == nil || now == nil || tree == nil || ctx == nil {
		return nil, absent("plan a rewind", "target, entry, tree or context")
	}
	p := planner{now: now, opts: opts, apart: target.Number == 0, differ: map[string]differing{}, changes: map[string]Change{}, retained: map[string]Retained{}}
	if err := p.read(ctx, s, target, tree, last); err != nil {
		return nil, err
	}
	p.crosses, p.since = mountsOf(target, now, p.apart)
	err := paths(tree, s.Tree(target.Root), func(path string, now, was *files.Fingerprint) error {
		p.differ[path] = differing{now, was}
		p.order = append(p.order, path)
		return p.decide(path, now, was)
	})
	if err != nil {
		return nil, err
	}
	if err := p.unpair(s, target, tree); err != nil {
		return nil, err
	}
	if err := p.lookInFolders(s); err != nil {
		return nil, err
	}
	if err := p.lookForMoved(s); err != nil {
		return nil, err
	}
	if err := p.lookBeside(s, tree); err != nil {
		return nil, err
	}
	p.settle()
	plan := &Plan{Permitted: opts.Permitted, InUse: opts.Force, Later: !target.Git.Same(now.Git), mounts: p.crosses, volumes: now.volumes(), id: now.ID.String()}
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
