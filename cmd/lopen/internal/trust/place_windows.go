package trust

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity is a folder's birth.
func identity(_ string, info fs.FileInfo) string {
	if data, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		return fmt.Sprint(data.CreationTime.Nanoseconds())
	}
	return "folder"
}
