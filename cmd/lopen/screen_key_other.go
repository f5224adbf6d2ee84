//go:build !unix

package main

// Key is none: a wait ends by itself.
func (s *screen) Key() (<-chan struct{}, func()) { return nil, func() {} }
