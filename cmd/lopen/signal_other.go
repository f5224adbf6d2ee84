//go:build !unix

package main

import "os"

// endSignals end a run in good order.
var endSignals = []os.Signal{os.Interrupt}
