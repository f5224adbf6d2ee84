// Package session holds the values of a session: its [ID], its [State] with
// tasks and metrics, the triggers of a save, and the strict codec of state.json
// and metrics.json. It knows neither goroutines nor the disk and uses the standard
// library only.
//
// A State is immutable. A change begins with [State.Edit] and ends with
// [Edit.State], which checks what was changed; the result shares everything else
// with the State before it. So handing a State over is handing over a pointer,
// and what storage accepts can be encoded.
//
//	e := st.Edit()
//	e.Header().Phase = session.PhaseBuilding
//	next, err := e.State()
//
// Tasks live in one persistent hash trie by their ID; a task names its parent and
// its children, and nesting exists only in the written JSON. Changing, finding and
// comparing cost O(log n) whatever the plan's shape, except that changing a list of
// children copies that list.
//
// # Concurrency
//
// A State and everything read from it may be used from any goroutine, and must
// not be written to. An Edit belongs to one goroutine.
package session
