package actors_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// memory is a Committer that keeps the last State in memory.
type memory struct{ last *session.State }

func (m *memory) Commit(b actors.Batch) (actors.Committed, error) {
	m.last = b.State
	return actors.Committed{Seq: 1}, nil
}
func (m *memory) Check() error                  { return nil }
func (m *memory) Publication(bool) func() error { return nil }
func (m *memory) Published(error)               {}
func (m *memory) Recover() error                { return nil }
func (m *memory) Close() error                  { return nil }

func ExampleStart() {
	now := time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC)
	id, _ := session.NewID("auth", now, 1)
	st, _ := session.New(id, now)
	disk := &memory{}

	a := actors.Start(st, disk, actors.Options{})
	e := a.State().Edit()
	e.Header().Phase = session.PhaseBuilding
	next, _ := e.State()
	_ = a.Save(next, session.TriggerPhaseChanged) // accepted
	_ = a.Sync(context.Background())              // durable
	fmt.Println(disk.last.Phase())
	fmt.Println(a.Close(context.Background()))
	// Output:
	// building
	// <nil>
}
