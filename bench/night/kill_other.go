//go:build !unix

package main

import "os"

// kill ends this process at once.
func kill() error { os.Exit(137); return nil }
