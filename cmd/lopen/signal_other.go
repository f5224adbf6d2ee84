//go:build !unix

package main

import "os"

// endSignals end a run in good order.
var endSignals = []os.Signal{os.Interrupt}

// stopSignals stop a run until it is continued: there are none.
var stopSignals []os.Signal

func stopUntilContinued() {}
