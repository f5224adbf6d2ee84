package checkpoint

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
)

// A planner makes one Plan. It has only the paths that differ.
type planner struct {
	now        *Entry
	opts       RewindOptions
	apart      bool // the target is imported: nothing is known of what led from it to now
	line       map[uint64]bool
	until      map[string]uint64 // the newest entry on the line of each session
	then, is   history           // at the target and now
	had        history           // at the session's newest entry before now; nil if it is not known
	crosses    map[string]bool   // mount points of the target that are there now
	since      map[string]bool   // paths at which something was mounted or unmounted since the target
	older      map[string]bool   // see Entry.Older, since the target
	rules      []*files.Rules    // in force at the target and now
	found      *Rules            // now
	first      *Tree             // of the oldest entry on the line that was not removed, or nil
	firstRules *files.Rules      // in force at that entry

	differ   map[string]differing
	order    []string // the paths of differ, a folder before its contents
	changes  map[string]Change
	retained map[string]Retained
	stands   []string // names in folders of changes that no checkpoint has
}

// differing is what a path is now, and what it was at the target.
type differing struct{ now, was *files.Fingerprint }

// read reads everything that the decisions depend on.
func (p *planner) read(ctx context.Context, s *Store, target *Entry, tree *Tree, last uint64) error {
	entries, _, err := s.List()
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e *Entry) bool { return e.Number >= p.now.Number })
	if p.line, err = s.Line(last); err != nil {
		return err
	}
	p.older = olderSince(append(slices.Clip(entries), p.now), target)
	p.until = map[string]uint64{p.now.Session: p.now.Number}
	var own uint64
	for _, e := range entries {
		if p.line[e.Number] {
			own = e.Number
			p.until[e.Session] = max(p.until[e.Session], e.Number)
		}
	}
	i := slices.IndexFunc(entries, func(e *Entry) bool { return p.line[e.Number] && e.Removed == "" })
	if p.then, p.had, p.is, err = s.histories(ctx, append(entries, p.now), target, own, tree); err != nil {
		return err
	}
	for _, e := range []*Entry{target, p.now} {
		rules, err := s.Rules(e)
		if err != nil {
			return err
		}
		p.rules, p.found = append(p.rules, rules.InForce), rules
	}
	if i >= 0 {
		p.first = s.Tree(entries[i].Root)
		rules, err := s.Rules(entries[i])
		if err != nil {
			return err
		}
		p.firstRules = rules.InForce
	}
	return nil
}

// decide adds a path that differs to the changes or to the retained paths.
func (p *planner) decide(path string, now, was *files.Fingerprint) error {
	if !p.asked(path) {
		return nil
	}
	k := p.outside(path, now, was)
	var err error
	switch {
	case k.Why != "":
	case p.opts.Take != nil:
		k.Why, err = p.opts.Take(path, now, was)
	case p.apart:
		if !p.opts.Force || was == nil {
			k.Why = Apart
		}
	default:
		k, err = p.blame(path, now, was)
	}
	if hidden(now) {
		k.At = 0 // no checkpoint has what is there
	}
	switch {
	case err != nil:
	case k.Why == "":
		p.changes[path] = p.change(path, now, was)
	default:
		p.retained[k.Path] = k
	}
	return err
}

// outside retains a path that no rewind takes, whoever changed it.
func (p *planner) outside(path string, now, was *files.Fingerprint) Retained {
	if at := p.mounted(path); at != "" {
		return Retained{Path: at, Why: Mounted}
	}
	k := p.hidden(path, now, was)
	if k.Why != "" {
		return k
	}
	if at := p.olderAt(path); was == nil && at != "" {
		return Retained{Path: at, Why: Older}
	}
	if of, is := p.decideHidden(path, now, was); is {
		return of
	}
	return k
}

// asked reports whether a path is one that the rewind is for.
func (p *planner) asked(path string) bool {
	return p.opts.Paths == nil || slices.ContainsFunc(p.opts.Paths, func(in string) bool { return in == "." || path == in || strings.HasPrefix(path, in+"/") })
}

// blame retains a path that others changed since the target, or that was there before the session.
func (p *planner) blame(path string, now, was *files.Fingerprint) (k Retained, err error) {
	nodes, undone := p.is.since(p.then, p.had, path, p.own)
	if undone {
		return Retained{Path: path}, nil
	}
	k = p.others(path, nodes, was == nil, hidden(now))
	if k.Why == "" && was == nil {
		k.Why, err = p.early(path, likeFolder(now))
	}
	return k, err
}

// own reports whether an entry belongs to the session or its line. What a rewind did that has not ended
// comes after the entry before it, and so after a fork at that entry.
func (p *planner) own(e *Entry) bool {
	return p.line[e.Number] && e.Reason != BeforeRewind || e.Session == p.now.Session
}

// hidden retains paths that are ignored by the rules in force, and paths that one of the trees
// could not record.
func (p *planner) hidden(path string, now, was *files.Fingerprint) Retained {
	dir := likeFolder(now) || likeFolder(was)
	if slices.ContainsFunc(p.rules, func(r *files.Rules) bool { return r.Ignored(path, dir) }) {
		return Retained{Path: path, Why: Ignored}
	}
	for _, f := range []*files.Fingerprint{now, was} {
		if !unknown(f) {
			continue
		}
		switch files.Reason(f.Target) {
		case files.Ignored:
			return Retained{Path: f.Path, Why: Ignored}
		case files.Nested:
			return Retained{Path: f.Path, Why: Nested}
		case files.Mounted:
			return Retained{Path: f.Path, Why: Mounted}
		case files.TooLarge:
			return Retained{Path: f.Path, Why: TooLarge}
		case unsettled:
			return Retained{Path: f.Path, Why: Unsettled}
		}
		return Retained{Path: f.Path, Why: Unknown}
	}
	return Retained{Path: path}
}

// others retains a path unless only the session's own tasks changed it since the target, and
// says who else did. What goes as a whole may have files that somebody else alone made: it is not forced.
func (p *planner) others(path string, nodes []*change, deletes, whole bool) Retained {
	k := Retained{Path: path}
	var blamed []*change
	own := false
	for _, c := range nodes {
		mine, doubt := p.share(c)
		own = own || mine > 0
		if p.blames(&k, c, mine, doubt) {
			k.At, blamed = max(k.At, c.at.Number), append(blamed, c)
		}
	}
	if p.opts.Force && !whole && !(deletes && (!own || k.Why == Uncovered)) {
		return Retained{Path: path}
	}
	k.By = p.names(blamed)
	return k
}

// share returns how many of the tasks that may have made a change are the session's own, and
// whether somebody else may have made it too.
func (p *planner) share(c *change) (int, bool) {
	mine, doubt := 0, c.doubt || c.nobody || p.othersRewind(c)
	for _, a := range c.who {
		if p.line[a.Begun] {
			mine++
			doubt = doubt || c.at.Number > p.until[a.Session] // that session may have continued
		}
	}
	return mine, doubt
}

// perhapsOthers reports whether others alone may have made a change: between the entries were
// several intervals, since those that divide them were removed, and in one of them the session's
// own tasks were not at work.
func (p *planner) perhapsOthers(c *change) bool {
	return slices.ContainsFunc(c.by, func(by []Active) bool {
		return !slices.ContainsFunc(by, func(a Active) bool { return p.line[a.Begun] })
	})
}

func (p *planner) othersRewind(c *change) bool { return c.rewind != nil && !p.own(c.rewind) }

// blames sets in k why a change makes its path retained. It returns false if the change does
// not.
func (p *planner) blames(k *Retained, c *change, mine int, doubt bool) bool {
	switch {
	case c.uncovered:
		k.Why = Uncovered
	case mine > 0 && p.perhapsOthers(c):
		if k.Why != Uncovered {
			k.Why = Foreign
		}
	case mine > 0 && (p.opts.Contested || mine == len(c.who) && !doubt):
		return false
	case mine > 0 && k.Why == "":
		k.Why = Contested
	case mine == 0 && k.Why != Uncovered:
		k.Why = Foreign
	}
	return true
}

// names returns a text with everybody who made the changes, each once.
func (p *planner) names(changes []*change) string {
	var who []string
	add := func(one string) {
		if !slices.Contains(who, one) {
			who = append(who, one)
		}
	}
	nobody := false
	for _, c := range changes {
		for _, a := range c.who {
			add(a.Session + " " + a.Task)
		}
		if p.othersRewind(c) {
			add(c.rewind.Session + "'s rewind")
		}
		nobody = nobody || c.nobody
	}
	if nobody {
		who = append(who, "nobody's task")
	}
	return strings.Join(who, ", ")
}

// early retains paths that existed, recorded or ignored, before the session's first task.
func (p *planner) early(path string, dir bool) (Why, error) {
	if p.first == nil {
		return "", nil
	}
	if p.firstRules.Ignored(path, dir) {
		return Ignored, nil
	}
	it, err := p.first.find(path)
	if err != nil || it == nil || it.kind == kindUnknown && it.text == string(unsettled) { // the target knows of its absence
		return "", err
	}
	return First, nil
}

func (p *planner) change(path string, from, to *files.Fingerprint) Change {
	c := Change{Kind: KindOverwrite, Path: path, Old: from, New: to, At: p.now.Number}
	if node := p.is[path]; node != nil {
		c.At = node.at.Number
	}
	switch {
	case hidden(from):
		c.Kind, c.At = KindAway, 0
	case hidden(to):
		c.Kind, c.At = KindBack, 0
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

// settle makes the changes consistent with each other and with the retained paths. A folder in
// which something is created is created as well. A change that a retained path prevents is
// dropped.
func (p *planner) settle() {
	holds := p.holding()
	for _, file := range p.order {
		c, ok := p.changes[file]
		switch {
		case !ok:
		case isDir(c.Old) && holds[file] && c.New == nil:
			delete(p.changes, file) // the folder stays, because something in it stays
		case c.New != nil && !isDir(c.New) && holds[file], c.New != nil && !p.reachable(file):
			delete(p.changes, file)
			p.retained[file] = Retained{Path: file, Why: Blocked}
		}
	}
}

// holding returns the folders in which something stays.
func (p *planner) holding() map[string]bool {
	holds := map[string]bool{}
	stays := func(file string) {
		for dir := path.Dir(file); dir != "." && !holds[dir]; dir = path.Dir(dir) {
			holds[dir] = true
		}
	}
	for _, file := range p.order {
		if c, ok := p.changes[file]; p.differ[file].now != nil && !(ok && c.New == nil) {
			stays(file)
		}
	}
	for _, file := range p.stands {
		stays(file)
	}
	return holds
}

// reachable reports whether the folders above a path exist or will exist. It adds changes that
// create folders which were removed since the target.
func (p *planner) reachable(file string) bool {
	for i, r := range file {
		if r != '/' {
			continue
		}
		dir := file[:i]
		d, differs := p.differ[dir]
		switch c, ok := p.changes[dir]; {
		case ok && isDir(c.New), !differs, isDir(d.now) && !ok:
		case d.now == nil && isDir(d.was):
			p.changes[dir] = p.change(dir, nil, d.was)
			delete(p.retained, dir)
		default:
			return false
		}
	}
	return true
}
