//go:build !unix

package main

import "os"

// panicSignal does nothing: there is no such signal.
func panicSignal(chan os.Signal) {}
