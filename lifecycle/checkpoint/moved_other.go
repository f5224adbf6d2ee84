//go:build !unix

package checkpoint

import "syscall"

// heldErrors say that a path cannot be moved, at least not now.
var heldErrors = []error{syscall.EXDEV, syscall.EBUSY, syscall.EPERM, syscall.EACCES}
