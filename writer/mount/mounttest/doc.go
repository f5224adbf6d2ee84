// Package mounttest has tests that mount: each runs in a mount namespace of its own.
// It is for tests.
package mounttest
