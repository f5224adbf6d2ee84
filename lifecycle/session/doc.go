// Package session holds the values of a session: its [ID], its [State] with tasks and
// metrics, the triggers of a save, and the rules that they keep. It knows neither
// goroutines nor the disk, and needs nothing outside the standard library but the reader
// of JSON and the errors of package envelope. Package wire reads and writes what is here;
// package record has what a line of a session's log says.
//
// A State is immutable. A change begins with [State.Edit] and ends with
// [Edit.State], which checks what was changed; the result shares everything else
// with the State before it. So handing a State over is handing over a pointer, and
// whatever an Edit accepts can be written and is read again as the same.
//
//	e := st.Edit()
//	e.Header().Phase = session.PhaseBuilding
//	next, err := e.State()
//
// Tasks are in one persistent hash trie by their ID; a task names its parent and its
// children, and nesting exists only in the written JSON. Changing, finding and
// comparing cost O(log n) whatever the plan's shape, except that changing a list of
// children copies and checks that list. A decoder, which reads tasks in the order of
// the tree, makes a State with a [Builder] in a fraction of the time.
//
// A rule that is critical holds for every State: what breaks it can neither be built nor
// read, and [FindingOf] names it. [Check] finds what breaks the others.
//
// # Concurrency
//
// A State and everything read from it may be used from any goroutine, and must
// not be written to. An Edit and a Builder belong to one goroutine.
//
// # Caveats
//
// Slices of a [Task], Data, ModelConfig and Extra are shared, not copied: they may
// be a megabyte, or a million children. Treat what you get as read only and what you
// gave as given away.
//
// Members that this version does not know are written back at the top of state.json and
// in tasks. Within the smaller objects, such as settings or an attempt, and in
// metrics.json they are dropped.
package session
