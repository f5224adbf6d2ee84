// Package storetest checks that a store keeps what [lifecycle.Sessions] and
// [lifecycle.Conversation] promise, whatever is behind it: one suite for every
// implementation, as restic has for its backends.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Config[*lifecycle.Session]{
//			New: func(t storetest.T) storetest.Place[*lifecycle.Session] { ... },
//		})
//	}
//
// Each check gets a [Place] of its own. What a store cannot do is named in
// Config.Skip with the reason, which the test's output shows.
//
// # Concurrency
//
// The checks run side by side. A check calls from several goroutines where the
// promise is about them.
//
// # Crash safety
//
// Not checked here: a power cut needs a disk that can lose one, as writer/crashfs is.
package storetest
