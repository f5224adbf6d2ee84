package trust

import "os"

// placeOf tells a folder from another one that lies in its place later. It is "" where there is none.
func placeOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return ""
	}
	return identity(path, info)
}
