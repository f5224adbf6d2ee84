// Package session has the values of a session: its [ID], its [State] with tasks and
// metrics, the triggers of a save, and the rules that hold for them. It knows neither
// goroutines nor the disk, and imports nothing outside the standard library but the reader
// of JSON and the errors of package envelope. Package wire encodes and decodes these
// values; package record has the values of a session's log.
//
// A State is immutable. A change begins with [State.Edit] and ends with [Edit.State],
// which checks what was changed. The result shares everything else with the State before
// it, so that a State is passed on as a pointer. Whatever an Edit accepts can be written,
// and is read again as the same.
//
//	e := st.Edit()
//	e.Header().Phase = session.PhaseBuilding
//	next, err := e.State()
//
// Tasks are in one persistent hash trie by their ID. A task names its parent and its
// children; only the written JSON is nested. Changing and finding a task cost O(log n) for
// a plan of any shape, except that changing a list of children copies and checks that list.
// A decoder, which reads tasks in the order of the tree, makes a State with a [Builder] in
// a fraction of the time.
//
// A critical rule holds for every State: a State that breaks it can neither be built nor
// read, and [FindingOf] names the rule in the error. [Check] finds broken rules that are
// not critical.
//
// # Concurrency
//
// A State and everything read from it may be used from any goroutine, and must not be
// changed. An Edit and a Builder belong to one goroutine.
//
// # Caveats
//
// Slices of a [Task], Data, ModelConfig and Extra are shared and not copied, because they
// may have a megabyte, or a million children. Do not change them, neither those that a State
// returned nor those that were put into an Edit.
//
// Members that this version does not know are preserved at the top level of state.json and
// in tasks. In smaller objects, such as settings or an attempt, and in metrics.json they
// are dropped.
package session
