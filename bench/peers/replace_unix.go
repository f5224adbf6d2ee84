//go:build !windows

package main

import "github.com/google/renameio/v2"

var openRenameio = openWhole(func(path string, data []byte) error { return renameio.WriteFile(path, data, 0o600) })
