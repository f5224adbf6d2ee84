// Package session holds the values of a session: its [ID], its [State] with
// tasks and metrics, the triggers of a save, and the strict codec of state.json
// and metrics.json. It knows neither goroutines nor the disk and uses the standard
// library only.
//
// A State is immutable. A change begins with [State.Edit] and ends with
// [Edit.State], which checks what was changed; the result shares everything else
// with the State before it. So handing a State over is handing over a pointer, and
// whatever an Edit accepts, [EncodeState] and [EncodeMetrics] can write and
// [Decode] reads again as the same.
//
//	e := st.Edit()
//	e.Header().Phase = session.PhaseBuilding
//	next, err := e.State()
//
// Tasks live in one persistent hash trie by their ID; a task names its parent and
// its children, and nesting exists only in the written JSON. Changing, finding and
// comparing cost O(log n) whatever the plan's shape, except that changing a list of
// children copies and checks that list.
//
// A [Rule] that is critical holds for every State: what breaks it is not built and not
// read, and [FindingOf] tells which one it was. [Check] finds what breaks the others.
//
// # Concurrency
//
// A State and everything read from it may be used from any goroutine, and must
// not be written to. An Edit belongs to one goroutine.
//
// # Crash safety
//
// There is none in here, but the two files are made for being replaced one after
// the other, metrics.json first: each ends with a CRC-32C of all that is before it,
// and state.json says how many iterations it covers, so that metrics that are ahead
// are cut to it. What is damaged ([ErrCorrupt]), what somebody edited ([ErrChecksum])
// and what a newer version wrote ([ErrFutureVersion]) are told apart.
//
// # Caveats
//
// Slices of a [Task], Data, ModelConfig and Extra are shared, not copied: they may
// be a megabyte, or a million children. Treat what you get as read only and what you
// gave as given away.
//
// The strings of a decoded State share one copy of its file, which stays in memory
// while any of them is used.
//
// Unknown members are kept at the top of state.json and in tasks; within the
// smaller objects, such as settings or an attempt, and in metrics.json they are not.
package session
