//go:build !linux

package proc

// Without /proc the start of a process is not looked up: a process is taken for
// the recorded one while its number is in use since.
func BootID() string   { return "" }
func Start(int) string { return "" }

// Space is "": there is one PID namespace.
func Space() string { return "" }
