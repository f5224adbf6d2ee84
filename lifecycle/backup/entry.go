package backup

import (
	"bytes"
	"fmt"

	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An entry is a line in the list of a snapshot: a file with where its content is or, without a
// name, an object of the checkpoints.
type entry struct {
	Name string `json:"name,omitempty"`
	ref
}

// maxLine bounds an entry, in bytes: a name has at most 255.
const maxLine = 1 << 10

// encode returns the line of an entry.
func (e *entry) encode() ([]byte, error) {
	line, err := strictjson.Marshal(e)
	if err == nil && len(line) >= maxLine {
		err = fmt.Errorf("entry %.80q: its line has %d bytes", e.Name, len(line))
	}
	return append(line, '\n'), err
}

// ends reports whether an object of the list ends behind this line: about every 256 lines, and
// before it gets too long.
func ends(line []byte, size int) bool {
	return envelope.Sum(line)&0xff == 0 || size > chunkSize-maxLine
}

// decode reads the entry that begins lines, and returns what follows it.
func (e *entry) decode(lines []byte) ([]byte, error) {
	line, rest, ok := bytes.Cut(lines, []byte("\n"))
	*e = entry{}
	if !ok || len(line) >= maxLine {
		return nil, damaged(fmt.Errorf("the list of entries has a line of %d bytes without an end", len(line)))
	}
	if err := strictjson.Unmarshal(line, e); err != nil {
		return nil, damaged(fmt.Errorf("the list of entries: %w", err))
	}
	if e.Name == "" && e.Depth == 0 && e.Size >= 0 {
		return rest, nil
	}
	return rest, e.check()
}
