package loop

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/criteria"
	"github.com/lopen-dev/lopen/writer/plain"
)

// Differences are how a module's specification differs from what it was when the plan was made of
// it, or was last updated.
type Differences struct {
	*criteria.Diff
	Path string        // of the specification, below the project's folder
	Same bool          // it is the same, byte for byte; the Diff is empty then, and can do nothing
	Lost bool          // it is gone or empty, and was not; likewise
	Left []plan.Remark // what stands where its criteria are and is none; nothing if it is the same
	// New is what is to be remembered of it, if nothing is yet, or only what is Damaged.
	New     *criteria.Record
	Damaged error
}

// CompareSpecification compares a module's specification with what is remembered of it. If nothing
// is, or if the plan is new, the plan is compared with it if it was made of it; a plan from
// elsewhere covers what the specification has now. store may be nil. CompareSpecification changes
// nothing.
func CompareSpecification(store Plans, docs fs.FS, module, spec string, p *plan.Plan, planIsNew bool) (*Differences, error) {
	d := &Differences{Path: spec, Diff: &criteria.Diff{}}
	var record *criteria.Record
	if store != nil && !planIsNew {
		var err error
		record, err = store.Specification(module)
		switch {
		case errors.Is(err, lifecycle.ErrCorrupt):
			d.Damaged = err
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	src, err := prompt.ReadSpec(docs, spec)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// A file that lost its content, as on a full disk, takes no criterion back.
	missing := len(bytes.TrimSpace(src)) == 0
	if record != nil && (missing || record.IsOf(src)) {
		d.Same = record.IsOf(src)
		d.Lost = !d.Same
		return d, nil
	}
	now, err := criteria.Read(src)
	if err != nil {
		return nil, fmt.Errorf("compare %s with the plan: %w", spec, err)
	}
	d.Left = now.Left()
	if record == nil {
		if record = criteria.Of(now); p.Origin() == spec {
			record = criteria.Made(now, p)
		}
		d.New = record
	}
	d.Diff = record.Compare(now, p)
	return d, nil
}

// maxNamed is how many criteria, and how many sections, are named.
const maxNamed = 5

// Lines returns what a person is told of the differences, nothing if there are none.
func (d *Differences) Lines(module string) (lines []string) {
	if d.Lost {
		return []string{fmt.Sprintf("specification: %s is gone or empty; the plan stays as it is", d.Path)}
	}
	if d.Empty() {
		return nil
	}
	lines = []string{fmt.Sprintf("specification: %s is not what the plan was made of", plain.Line(d.Path))}
	for _, c := range d.Criteria[:min(len(d.Criteria), maxNamed)] {
		line := ""
		if c.Line > 0 {
			line = fmt.Sprintf(", line %d", c.Line)
		}
		lines = append(lines, fmt.Sprintf("  %s%s: %s", c.What, line, CriterionText(c)))
	}
	if n := len(d.Criteria); n > maxNamed {
		lines = append(lines, fmt.Sprintf("  and %d more: lopen section drift %s", n-maxNamed, module))
	}
	var named []string
	for _, s := range d.Sections[:min(len(d.Sections), maxNamed)] {
		named = append(named, s.What+" "+SectionName(s.Section))
	}
	if n := len(d.Sections); n > maxNamed {
		named = append(named, fmt.Sprintf("and %d more", n-maxNamed))
	}
	if len(named) > 0 {
		lines = append(lines, "  sections: "+strings.Join(named, ", "))
	}
	return append(lines, "  take it into the plan: lopen plan update "+module)
}

// LeftLines returns a line for each of Left that is no task.
func (d *Differences) LeftLines() (lines []string) {
	for _, r := range d.Left {
		lines = append(lines, fmt.Sprintf("%s:%d: no task: %s", plain.Line(d.Path), r.Line, plain.Line(r.Text)))
	}
	return lines
}

// SectionName returns the name of a section for a line of text.
func SectionName(path string) string {
	if path == "" {
		return "(the text above the first heading)"
	}
	return plain.Line(path)
}

// CriterionText returns what there is to say of a criterion, in a line.
func CriterionText(c criteria.Change) string {
	const most = 120
	text, was := plain.Clip(plain.Line(c.Text), most), plain.Clip(plain.Line(c.Was), most)
	switch {
	case c.What == criteria.Gone && c.Task != "":
		return was + "; its task is in the plan: " + c.Task
	case c.What == criteria.Gone:
		return was
	case c.What == criteria.Added:
		return text
	case c.Text == c.Was:
		return text + "; its details changed"
	}
	return text + "; before: " + was
}

// Exit returns the Exit of a run that has nothing left to do while criteria have no task; nil if
// each has one. then is what to do after the plan is updated.
func (d *Differences) Exit(module, then string) *Exit {
	n := d.Uncovered()
	switch n {
	case 0:
		return nil
	case 1:
		return &Exit{ExitUser, fmt.Sprintf("1 criterion of %s has no task: lopen plan update %s; then %s", d.Path, module, then)}
	}
	return &Exit{ExitUser, fmt.Sprintf("%d criteria of %s have no task: lopen plan update %s; then %s", n, d.Path, module, then)}
}

// specification says how the specification differs from what the plan was made of, and remembers
// it if nothing of it is remembered yet. It returns the Exit of a run that ends now. What cannot
// be compared is warned of: it does not stop a run.
func (r *runner) specification(p *plan.Plan) *Exit {
	d, err := CompareSpecification(r.cfg.Store, r.cfg.Documents.FS, r.cfg.Module, r.cfg.Documents.Spec, p, r.planMade)
	if err != nil {
		r.cfg.UI.Warn("the specification is not compared with the plan: %v", err)
		return nil
	}
	if d.Damaged != nil {
		r.cfg.UI.Warn("specification: what was remembered of it is lost, and is made again of what it is now: %v", d.Damaged)
	}
	if r.planMade {
		for _, line := range d.LeftLines() {
			r.cfg.UI.Say("%s", line)
		}
	}
	if d.New != nil {
		if err := r.cfg.Store.RememberSpecification(r.cfg.Module, d.New); err != nil {
			r.cfg.UI.Warn("specification: %v", err)
		} else {
			r.planMade = false
		}
	}
	uncovered := d.Exit(r.cfg.Module, r.resumeHint())
	lines := d.Lines(r.cfg.Module)
	if r.starts == 0 && slices.Equal(lines, r.differs) {
		return uncovered // it was said right before
	}
	r.differs = lines
	for i, line := range lines {
		if i == 0 && uncovered != nil {
			r.cfg.UI.Warn("%s", line)
		} else {
			r.cfg.UI.Say("%s", line)
		}
	}
	return uncovered
}
