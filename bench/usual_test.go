package bench

import "testing"

// usual leaves out the last size, which takes minutes or gigabytes, with -short.
func usual(sizes ...int) []int {
	if testing.Short() {
		return sizes[:len(sizes)-1]
	}
	return sizes
}

// many is n, or a tenth of it with -short.
func many(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}
