package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
)

// PlanPath is where a module's plan lies below the project's folder.
func PlanPath(module string) string { return Dir + "/" + modulesDir + "/" + module + "/plan.md" }

// Plan reads a module's plan. errors.Is(err, fs.ErrNotExist) says that there is none.
func (s *Store) Plan(module string) (*plan.Plan, error) { return s.ReloadPlan(module, nil) }

// Modules returns the modules that have a folder, by name. Whether they have a plan
// [Store.Plan] says.
func (s *Store) Modules() ([]string, error) {
	entries, err := s.root().ReadDir(modulesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() && session.ValidateModule(e.Name()) == nil {
			all = append(all, e.Name())
		}
	}
	slices.Sort(all)
	return all, nil
}

// ReloadPlan reads a module's plan of which base was read before: it is base
// itself while the file says the same. See plan.Reload.
func (s *Store) ReloadPlan(module string, base *plan.Plan) (*plan.Plan, error) {
	dir, err := s.moduleDir(module)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return plan.Reload(dir, "plan.md", base)
}

// CreatePlan writes a module's plan, durably. One that exists is never
// overwritten: errors.Is(err, fs.ErrExist).
func (s *Store) CreatePlan(module string, content []byte) error {
	if err := session.ValidateModule(module); err != nil {
		return &Error{Op: "create plan", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	if err := s.layout(); err != nil {
		return err
	}
	if _, err := s.keepModule(module); err != nil {
		return fmt.Errorf("create plan: %w", err)
	}
	if err := writer.MkdirDurable(s.root(), modulesDir+"/"+module); err != nil {
		return fmt.Errorf("create plan: %w", err)
	}
	dir, err := s.moduleDir(module)
	if err != nil {
		return err
	}
	defer dir.Close()
	return plan.CreateFile(dir, "plan.md", content)
}

// EditPlan carries a change out on a module's plan, durably. base is the plan as
// the caller knows it; edits that came in between are kept, or are a
// *plan.ConflictError. See plan.Apply.
func (s *Store) EditPlan(module string, base *plan.Plan, change plan.Change) (*plan.Plan, error) {
	dir, err := s.moduleDir(module)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if _, err := s.keepModule(module); err != nil {
		return nil, fmt.Errorf("edit plan: %w", err)
	}
	return plan.Apply(dir, "plan.md", base, change)
}

func (s *Store) moduleDir(module string) (writer.FS, error) {
	if err := session.ValidateModule(module); err != nil {
		return nil, &Error{Op: "open plan", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	dir, err := openDir(s.root(), modulesDir+"/"+module)
	if err != nil {
		var known *Error
		if errors.As(err, &known) {
			return nil, err
		}
		return nil, fmt.Errorf("open plan: %w", err)
	}
	return dir, nil
}
