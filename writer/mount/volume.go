package mount

import (
	"path"
	"strings"
)

// Volume returns what identifies the volume at a path in dir that is a mount point, see [VolumeAt], or ""
// where that is not known or the path is none.
func Volume(dir interface {
	Mount(name string) (uint64, error)
	Volume(name string) string
}, name string,
) string {
	at, err := dir.Mount(name)
	if err != nil {
		return ""
	}
	if above, err := dir.Mount(path.Dir(name)); err != nil || at == above {
		return ""
	}
	return dir.Volume(name)
}

// SameVolume reports whether two results of [Volume] are of the same volume, as far as that is known:
// nothing is of an empty one, and of two of different boots.
func SameVolume(a, b string) bool {
	return a == b || a == "" || b == "" || boot(a) != boot(b)
}

func boot(volume string) string { return volume[strings.LastIndexByte(volume, '/')+1:] }
