package bundle

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
)

const (
	// maxEntries bounds the entries of a bundle, and maxNames their names and folders
	// together: 16 bytes of each are in memory.
	maxEntries = 500_000
	maxNames   = 1_000_000
	maxName    = 255 // bytes of a name
	maxDepth   = 8   // its components
	// packMax is how many bytes an entry of many objects has at most, and maxSmall an object
	// in one. A Writer makes entries of packSize, which it has in memory.
	packMax  = 8 << 20
	packSize = 1 << 20
	maxSmall = 64 << 10
	// maxRatio and free bound how much comes of a file: after n of its bytes at most free +
	// maxRatio*n. Zeros compress better: a Writer pads them.
	maxRatio = 256
	free     = 16 << 20
	// maxWindow is how far back zstd may refer, in bytes.
	maxWindow = 8 << 20
)

// checkName refuses every name that is not spelled in the one way that is the same on all file
// systems: no case, no Unicode, nothing hidden, no way up. No name that a Reader gives can
// collide with another on any of them, nor lead out of a folder.
func checkName(name string) error {
	if len(name) > maxName || strings.Count(name, "/") >= maxDepth {
		return fmt.Errorf("an entry's name has more than %d bytes or %d parts", maxName, maxDepth)
	}
	for part := range strings.SplitSeq(name, "/") {
		if !isPart(part) {
			return fmt.Errorf("an entry's name is %q: each part has lower-case letters, digits and . _ -, and begins and ends with none of . _ -", name)
		}
	}
	return nil
}

func isPart(part string) bool {
	for i := range len(part) {
		c := part[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
		case (c == '.' || c == '_' || c == '-') && i > 0 && i < len(part)-1:
		default:
			return false
		}
	}
	return part != ""
}

// A mark stands for a text.
type mark [16]byte

func markOf[T string | []byte](text T) mark {
	sum := sha256.Sum256([]byte(text))
	return mark(sum[:])
}

// names are those that were there, by their marks: true for a file, false for a folder.
type names map[mark]bool

// add refuses a name that was there, and one that is a file and a folder.
func (n names) add(name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		isFile, there := n[markOf(dir)]
		if isFile {
			return fmt.Errorf("%s is a file and a folder", dir)
		}
		if there {
			break
		}
		n[markOf(dir)] = false
	}
	p := markOf(name)
	if _, there := n[p]; there {
		return fmt.Errorf("%s is there twice", name)
	}
	n[p] = true
	if len(n) > maxNames {
		return fmt.Errorf("it has more than %d names and folders", maxNames)
	}
	return nil
}
