//go:build !unix

package writer

// noWait: folders of this system have no FIFOs.
const noWait = 0
