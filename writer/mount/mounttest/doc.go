// Package mounttest runs tests that mount in a mount namespace of their own, so that nothing is left
// mounted, whatever becomes of the test.
package mounttest
