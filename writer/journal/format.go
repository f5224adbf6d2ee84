package journal

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Version is the format version of the segments that a Writer writes.
const Version = 1

// A Position names one record.
type Position struct {
	Epoch uint64 `json:"epoch"` // of the writer that wrote the record
	Seq   uint64 `json:"seq"`   // number of the record; 0 is the position before the first one
	CRC   string `json:"crc,omitempty"`
}

// A Record is what Append writes.
type Record struct {
	// Body and Object together hold the members of one JSON object, without its braces and
	// without a line feed. They have at most MaxBody bytes. Object may be empty; else it
	// is the value of the last member, so that the caller need not copy it behind Body.
	Body, Object []byte
	// Entry says that the State does not rest on the record: if it is lost, the other
	// records still lead to the State.
	Entry bool
}

// Named is a snapshot that a note vouches for: its file, the record whose State it holds,
// and the SHA-256 of its content in hex.
type Named struct {
	File   string `json:"file"`
	Epoch  uint64 `json:"epoch"`
	Seq    uint64 `json:"seq"`
	SHA256 string `json:"sha256"`
}

// header is the first line of a segment.
type header struct {
	Session string `json:"session"`
	Epoch   uint64 `json:"epoch"`
	Segment uint64 `json:"segment"`
	// After is the last record that was durable when the segment was opened. Later
	// records in earlier segments were never acknowledged.
	After Position `json:"after"`
	// State is the newest record at or below After that the State rests on.
	State uint64 `json:"state,omitempty"`
	// Copied is the number of bytes behind this line that were durable before the segment
	// got its name. Upto is the last record in them, and UptoState the newest one up to
	// Upto that the State rests on. The durable offsets in these records refer to the
	// file that they were copied from.
	Copied    int64  `json:"copied,omitempty"`
	Upto      uint64 `json:"upto,omitempty"`
	UptoState uint64 `json:"uptoState,omitempty"`
	// Reduced says that the segment does not have all records up to Upto: Drop removed
	// those that the State rested on. The next segment begins with a snapshot of the State.
	Reduced bool `json:"kept,omitempty"`
	// Packed says that the segment is compressed and replaces all segments before it whose
	// After is not below its own.
	Packed bool `json:"packed,omitempty"`
	// Codec is how a packed segment is compressed; "" means zstd.
	Codec codec.Codec `json:"codec,omitempty"`
}

// maxNumber bounds the numbers in headers and records, so that none wraps around.
const maxNumber = 1 << 62

// headers is the envelope of a first line.
var headers = envelope.Format{Key: "journal", Version: Version, Max: maxList, Seal: envelope.CRC}

// checksum returns the checksum at the end of a sealed line.
func checksum(line []byte) string {
	end := len(line) - len(envelope.Ending)
	return string(line[end-envelope.Digits : end])
}

// sealed returns the checksum of a line, or "" if it does not match.
func sealed(line []byte) string {
	if _, err := envelope.CRC.Open(line); err != nil {
		return ""
	}
	return checksum(line)
}

// name returns the name of the segment that the header belongs to.
func (h header) name() name {
	n := name{h.Epoch, h.Segment, h.Codec}
	if h.Packed {
		n.codec = cmp.Or(h.Codec, codec.Zstd)
	}
	return n
}

var errHeader = errors.New("the first line is no header of a segment")

// decodeHeader reads the first line of a segment. The error wraps
// envelope.ErrFutureVersion if a newer version wrote it.
func decodeHeader(line []byte) (h header, err error) {
	err = headers.Decode(line, &h)
	switch {
	case errors.Is(err, envelope.ErrFutureVersion):
		return header{}, err
	case err != nil:
		return header{}, errHeader
	case h.Copied < 0 || h.Copied > maxNumber || max(h.Epoch, h.Segment, h.After.Epoch, h.After.Seq, h.State, h.Upto, h.UptoState) > maxNumber:
		return h, errHeader
	case h.Codec != codec.None && (h.Codec != codec.Gzip || !h.Packed): // each name has one header
		return h, errHeader
	}
	return h, nil
}

// encodeRecord appends the line of a record to dst. synced is the offset up to which the
// segment is known to be durable. state is the newest record before this one that the State
// rests on.
func encodeRecord(dst []byte, at Position, synced int64, state uint64, r Record) []byte {
	start := len(dst)
	key := "prior"
	if r.Entry {
		key = "state"
	}
	dst = fmt.Appendf(dst, `{"seq":%d,"epoch":%d,"synced":%d,"%s":%d,`, at.Seq, at.Epoch, synced, key, state)
	dst = append(append(dst, r.Body...), r.Object...)
	return append(dst[:start], envelope.CRC.Append(dst[start:])...)
}

// encodeNote returns the line of a note: no record, but a statement that everything up to at
// is durable.
func encodeNote(at Position, synced int64, state uint64, named []Named) ([]byte, error) {
	list, err := strictjson.Marshal(named)
	if err != nil {
		return nil, err
	}
	return envelope.CRC.Append(fmt.Appendf(nil, `{"note":%d,"epoch":%d,"synced":%d,"state":%d,"named":%s`, at.Seq, at.Epoch, synced, state, list)), nil
}

// maxFrame bounds the length of the members before a record's body, in bytes.
const maxFrame = 128

// decodeLine reads the members before the body of a line. It returns false if the line is
// neither a record nor a note, or has a wrong checksum.
func decodeLine(line []byte) (item, bool) {
	it := item{Ref: Ref{Position: Position{CRC: sealed(line)}, Length: int64(len(line))}}
	if it.CRC == "" {
		return it, false
	}
	rest := string(line[:min(len(line), maxFrame)])
	number := func(key string, to *uint64) bool {
		digits, ok := strings.CutPrefix(rest, key)
		i := strings.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' })
		if !ok || i < 1 {
			return false
		}
		n, err := strconv.ParseUint(digits[:i], 10, 63)
		*to, rest = n, digits[i:]
		return err == nil && n <= maxNumber
	}
	it.note = strings.HasPrefix(rest, `{"note":`)
	begin := `{"seq":`
	if it.note {
		begin = `{"note":`
	}
	if !number(begin, &it.Seq) || !number(`,"epoch":`, &it.Epoch) || !number(`,"synced":`, &it.synced) {
		return it, false
	}
	it.Entry = number(`,"state":`, &it.state)
	ok := it.Entry || number(`,"prior":`, &it.state) && !it.note
	return it, ok && it.state <= it.Seq && strings.HasPrefix(rest, ",")
}

// decodeNamed returns the snapshots that a note names.
func decodeNamed(line []byte) (named []Named) {
	var note struct {
		Named []Named `json:"named"`
	}
	if strictjson.Unmarshal(line, &note) != nil {
		return nil // the line is sealed, so this is the note of a newer version and no damage
	}
	return note.Named
}
