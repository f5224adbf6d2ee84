// Package proc says what is known of a process: which boot of the machine it belongs to,
// when it started, and how what it wrote is shown.
package proc
