package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// maxDepth bounds how deep the objects and arrays of a line are nested.
const maxDepth = 32

const (
	versionKey  = `{"version":`
	checksumKey = `,"checksum":"crc32c:`
	ending      = "\"}\n"
	sealLen     = len(checksumKey) + 8 + len(ending)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Format is a kind of line. It is immutable.
type Format struct {
	Version int // from 1
	Max     int // bytes of a line, its line feed included
}

// Encode returns the sealed line of v, which must become a JSON object without a member
// named version or checksum. The error is that of encoding, or says that the line is
// longer than Max, with class invalid.
func (f Format) Encode(v any) ([]byte, error) {
	body, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if len(body) < 2 || body[0] != '{' {
		return nil, errors.New("encode: it is no object")
	}
	line := strconv.AppendInt([]byte(versionKey), int64(f.Version), 10)
	if body = body[1 : len(body)-1]; len(body) > 0 {
		line = append(append(line, ','), body...)
	}
	line = fmt.Appendf(line, "%s%08x%s", checksumKey, crc32.Checksum(line, castagnoli), ending)
	if len(line) > f.Max {
		return nil, fmt.Errorf("encode: it has %d bytes, more than the %d of a line: %w", len(line), f.Max, writer.ErrInvalid)
	}
	return line, nil
}

// Decode checks a line, the line feed included, and reads it into v, which may be nil.
// The error wraps [writer.ErrCorrupt], or [writer.ErrFutureVersion] for a whole line of a
// newer version.
func (f Format) Decode(line []byte, v any) error {
	version, err := f.open(line)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", err, writer.ErrCorrupt)
	case version > f.Version:
		return fmt.Errorf("its version is %d, and %d is known: %w", version, f.Version, writer.ErrFutureVersion)
	case v == nil:
		return nil
	}
	if err := strictjson.Unmarshal(line, v); err != nil {
		return fmt.Errorf("%w: %w", err, writer.ErrCorrupt)
	}
	return nil
}

// open checks all of a line but what its members mean.
func (f Format) open(line []byte) (version int, err error) {
	if len(line) > f.Max {
		return 0, fmt.Errorf("it has %d bytes, more than the %d of a line", len(line), f.Max)
	}
	body := len(line) - sealLen
	if body < len(versionKey) || !bytes.HasPrefix(line, []byte(versionKey)) || bytes.IndexByte(line, '\n') != len(line)-1 {
		return 0, errors.New("it is no sealed line")
	}
	if seal := fmt.Appendf(nil, "%s%08x%s", checksumKey, crc32.Checksum(line[:body], castagnoli), ending); !bytes.Equal(line[body:], seal) {
		return 0, errors.New("its checksum does not fit")
	}
	digits, _, _ := bytes.Cut(line[len(versionKey):], []byte(","))
	version, err = strconv.Atoi(string(digits))
	if err != nil || version < 1 || strconv.Itoa(version) != string(digits) {
		return 0, errors.New("its version is no number")
	}
	if tooDeep(line) {
		return 0, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	return version, nil
}

// tooDeep looks at the brackets outside of strings.
func tooDeep(line []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
