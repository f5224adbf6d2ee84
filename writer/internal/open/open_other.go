//go:build !unix

package open

// Folders of this system have no FIFOs.
const (
	NoFollow = 0
	NoWait   = 0
)
