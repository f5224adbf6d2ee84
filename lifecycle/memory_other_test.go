//go:build !linux

package lifecycle_test

func inMemory() {}
