package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// Version is the version of the segments that are written.
const Version = 1

// A Position names one record.
type Position struct {
	Epoch uint64 `json:"epoch"` // of the writer that wrote it
	Seq   uint64 `json:"seq"`   // 0 stands before the first record
	CRC   string `json:"crc,omitempty"`
}

// header is the first line of a segment.
type header struct {
	Version int    `json:"journal"`
	Session string `json:"session"`
	Epoch   uint64 `json:"epoch"`
	Segment uint64 `json:"segment"`
	// After is the last record that was durable when the segment was opened:
	// what earlier segments hold beyond it was never acknowledged.
	After Position `json:"after"`
	// Copied is how many bytes behind this line were durable before the segment
	// got its name, and Upto the last record in them. The marks in these records are
	// those of another file.
	Copied int64  `json:"copied,omitempty"`
	Upto   uint64 `json:"upto,omitempty"`
}

// maxNumber bounds the numbers in headers and records, so that none wraps around.
const maxNumber = 1 << 62

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crcKey begins what seal appends; the checksum is of all bytes before it.
const (
	crcKey  = `,"crc":"`
	sealLen = len(crcKey) + 8 + len("\"}\n")
)

// seal ends a line that lacks its last member.
func seal(line []byte) []byte {
	return fmt.Appendf(line, "%s%08x\"}\n", crcKey, crc32.Checksum(line, castagnoli))
}

// sealed returns the checksum of a whole line, "" if it does not fit.
func sealed(line []byte) string {
	body := len(line) - sealLen
	if body < 0 || line[len(line)-1] != '\n' || !bytes.HasPrefix(line[body:], []byte(crcKey)) {
		return ""
	}
	crc := fmt.Appendf(nil, "%08x", crc32.Checksum(line[:body], castagnoli))
	have := line[body+len(crcKey) : body+len(crcKey)+8]
	if !bytes.Equal(crc, have) || string(line[len(line)-3:]) != "\"}\n" {
		return ""
	}
	return string(have)
}

func (h header) encode() ([]byte, error) {
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return seal(line[:len(line)-1]), nil
}

var errHeader = errors.New("the first line is no header of a segment")

// decodeHeader reads the first line of a segment. The error wraps
// writer.ErrFutureVersion where a newer version wrote it.
func decodeHeader(line []byte) (header, error) {
	var h header
	if sealed(line) == "" || !bytes.HasPrefix(line, []byte(`{"journal":`)) {
		return h, errHeader
	}
	var version struct {
		Version int `json:"journal"`
	}
	if err := json.Unmarshal(line, &version); err != nil || version.Version < 1 {
		return h, errHeader
	}
	if version.Version > Version {
		return h, fmt.Errorf("journal version %d: %w", version.Version, writer.ErrFutureVersion)
	}
	if err := json.Unmarshal(line, &h); err != nil || h.Copied < 0 || h.Copied > maxNumber || max(h.Epoch, h.Segment, h.After.Epoch, h.After.Seq, h.Upto) > maxNumber {
		return h, errHeader
	}
	return h, nil
}

// encodeRecord frames a body, the members of one JSON object without its braces.
func encodeRecord(dst []byte, epoch, seq uint64, synced int64, body []byte) []byte {
	start := len(dst)
	dst = fmt.Appendf(dst, `{"seq":%d,"epoch":%d,"synced":%d,`, seq, epoch, synced)
	dst = append(dst, body...)
	return append(dst[:start], seal(dst[start:])...)
}

// decodeRecord reads the frame of a line; false if it is no valid record.
func decodeRecord(line []byte) (Ref, bool) {
	r := Ref{Position: Position{CRC: sealed(line)}, Length: int64(len(line))}
	if r.CRC == "" {
		return r, false
	}
	rest := string(line[:min(len(line), 96)])
	for _, m := range []struct {
		key string
		to  *uint64
	}{{`{"seq":`, &r.Seq}, {`,"epoch":`, &r.Epoch}, {`,"synced":`, &r.synced}} {
		digits, ok := strings.CutPrefix(rest, m.key)
		i := strings.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' })
		if !ok || i < 1 {
			return r, false
		}
		n, err := strconv.ParseUint(digits[:i], 10, 63)
		if err != nil || n > maxNumber {
			return r, false
		}
		*m.to, rest = n, digits[i:]
	}
	return r, strings.HasPrefix(rest, ",")
}
