package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// A mark is a file that holds the ID of one checkpoint and a checksum of it, on a line.
// An ID with one wrong digit is an ID.
func markLine(id ID) string {
	return fmt.Sprintf("%s crc32c:%08x\n", id, crc32.Checksum([]byte(id.String()), crc32.MakeTable(crc32.Castagnoli)))
}

func writeMark(dir writer.FS, name string, id ID) error {
	return writer.ReplaceFile(dir, name, []byte(markLine(id)), filePerm)
}

// readMark returns the ID that a mark holds, 0 where there is no mark.
func (s *Store) readMark(name string) (ID, error) {
	data, err := writer.ReadFile(s.dir, name, 64)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	text, _, _ := strings.Cut(string(data), " ")
	id, err := ParseID(text)
	if err == nil && string(data) != markLine(id) {
		err = errors.New("its checksum does not fit")
	}
	if err != nil {
		return 0, damaged(s.path(name), err)
	}
	return id, nil
}

// CheckMarks reads what stands beside the checkpoints: the highest ID that was removed,
// and the highest one that the session began with. The error wraps ErrCorrupt where one
// of them is damaged.
func (s *Store) CheckMarks() error {
	_, last := s.readMark(lastName)
	_, inherited := s.readMark(inheritedName)
	return errors.Join(last, inherited)
}
