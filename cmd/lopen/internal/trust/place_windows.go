package trust

import (
	"fmt"
	"os"
	"syscall"
)

// placeOf tells a folder from another one that lies in its place later: its birth.
func placeOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return ""
	}
	data, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d", data.CreationTime.Nanoseconds())
}
