package checkpoint

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// An ID is the number of a checkpoint, from 1 on, in the order in which a
// session's checkpoints were made. It is never given twice. 0 is none.
type ID uint64

const idPrefix = "cp-"

// String is the name of the checkpoint: cp-000001.
func (id ID) String() string { return fmt.Sprintf("%s%06d", idPrefix, uint64(id)) }

// MarshalText is String; it never fails.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// ParseID reads what String returns and nothing else. The error has class invalid.
func ParseID(s string) (ID, error) {
	digits, ok := strings.CutPrefix(s, idPrefix)
	n, err := strconv.ParseUint(digits, 10, 63)
	if id := ID(n); ok && err == nil && n > 0 && id.String() == s {
		return id, nil
	}
	return 0, &writer.Error{Op: "parse checkpoint", Path: strconv.Quote(s), Class: writer.ClassInvalid, Err: errors.New("the name of a checkpoint is like cp-000001")}
}
