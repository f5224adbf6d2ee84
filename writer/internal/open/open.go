package open

import "io/fs"

// Within names a folder by the entry that only a folder has. The system says ENOTDIR
// of anything else without opening it, where an open of a FIFO would wait for its
// other end. os.OpenRoot takes no O_DIRECTORY and no O_NONBLOCK.
func Within(name string) string { return name + "/." }

// Kind names what stands in a file's place.
func Kind(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeSymlink:
		return "a symlink"
	case fs.ModeDir:
		return "a folder"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSocket:
		return "a socket"
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		return "a device"
	}
	return "a special file"
}
