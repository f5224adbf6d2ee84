//go:build !unix

package main

// A keyReader is none: a wait ends by itself.
type keyReader struct{}

// Key is none: see keyReader.
func (p *pane) Key() (<-chan struct{}, func()) { return nil, func() {} }
