package criteria

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// fileName is the record's, in the folder of a module.
const fileName = "specification.json"

var format = envelope.Format{Key: "version", Version: 1, Max: 4 << 20, Seal: envelope.Checksum, File: true}

// A Record is what is remembered of a specification. The zero Record is of none.
type Record struct {
	Sum      string       `json:"sha256,omitempty"` // of the file, "" where there was none
	Sections []section    `json:"sections,omitempty"`
	Criteria []remembered `json:"criteria,omitempty"`
}

// remembered is what is remembered of a criterion.
type remembered struct {
	Section int    `json:"section"` // in Sections
	Text    string `json:"text"`    // at most maxText bytes of it
	Sum     string `json:"sha256"`
	Task    string `json:"task,omitempty"` // ID of what it became, "" if no task of its own
}

// Of returns the record of a specification from which nothing was made: all that it asks for
// counts as covered by a plan from elsewhere.
func Of(s *Specification) *Record { return s.record(make([]string, len(s.criteria))) }

// Made returns the record of a specification that a plan was made of. A criterion without a task
// of its text is not in it.
func Made(s *Specification, p *plan.Plan) *Record {
	d := (&Record{}).Compare(s, p)
	r := s.record(d.link)
	kept := r.Criteria[:0]
	for i, c := range r.Criteria {
		if d.link[i] != "" {
			kept = append(kept, c)
		}
	}
	r.Criteria = kept
	return r
}

// record returns the record, with the task of each criterion.
func (s *Specification) record(tasks []string) *Record {
	r := &Record{Sum: s.sum, Sections: s.sections}
	for i := range s.criteria {
		c := &s.criteria[i]
		r.Criteria = append(r.Criteria, remembered{Section: c.section, Text: clip(c.Text), Sum: c.sum, Task: tasks[i]})
	}
	return r
}

// Load reads the record of a module from its folder. errors.Is(err, fs.ErrNotExist) says that
// there is none, and writer.ClassOf that it is damaged or of a newer version.
func Load(dir writer.FS) (*Record, error) {
	data, err := writer.ReadFile(dir, fileName, int64(format.Max))
	if err != nil {
		return nil, err
	}
	r := &Record{}
	if err = format.Decode(data, r); err == nil {
		err = r.valid()
	}
	if err == nil {
		return r, nil
	}
	class := writer.ClassCorrupt
	if errors.Is(err, envelope.ErrFutureVersion) {
		class = writer.ClassFutureVersion
	}
	return nil, &writer.Error{Op: "read specification's record", Path: filepath.Join(dir.Name(), fileName), Class: class, Err: err}
}

func (r *Record) valid() error {
	if len(r.Criteria) > maxCriteria {
		return fmt.Errorf("it has %d criteria: %w", len(r.Criteria), envelope.ErrCorrupt)
	}
	for _, c := range r.Criteria {
		if c.Section < 0 || c.Section >= len(r.Sections) {
			return fmt.Errorf("it names section %d of %d: %w", c.Section, len(r.Sections), envelope.ErrCorrupt)
		}
	}
	return nil
}

// Save writes the record of a module into its folder, durably.
func (r *Record) Save(dir writer.FS) error {
	data, err := format.Encode(r)
	if err != nil {
		return fmt.Errorf("remember specification: %w", err)
	}
	if err := writer.RemoveTemps(dir, ".", func(of string) bool { return of == fileName }); err != nil {
		return err
	}
	return writer.ReplaceFile(dir, fileName, data, 0o600)
}

// IsOf says whether the record is that of a file, byte for byte: nothing differs then.
func (r *Record) IsOf(src []byte) bool { return r.Sum == sumOf(src) }
