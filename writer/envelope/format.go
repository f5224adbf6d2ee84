package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Format is a kind of sealed JSON object. It is immutable.
type Format struct {
	Key     string // of the first member, which holds the version
	Version int    // from 1
	Max     int    // bytes of an object, its line feed included
	Seal    Seal   // Checksum or CRC
	// File says that an object is a file of its own. A newer version is believed there
	// even where the checksum does not fit: it may seal in another way, and what it wrote is
	// to be left alone. Among other lines a line that does not fit is damaged.
	File bool
}

// Encode returns v, which must become a JSON object without the members that the envelope
// adds. The error is that of encoding, or says that the object is longer than Max.
func (f Format) Encode(v any) ([]byte, error) {
	body, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if len(body) < 2 || body[0] != '{' {
		return nil, errors.New("encode: it is no object")
	}
	line := strconv.AppendInt(f.begin(), int64(f.Version), 10)
	if body = body[1 : len(body)-1]; len(body) > 0 {
		line = append(append(line, ','), body...)
	}
	if line = f.Seal.Append(line); len(line) > f.Max {
		return nil, fmt.Errorf("encode: it has %d bytes, more than the %d of a line", len(line), f.Max)
	}
	return line, nil
}

func (f Format) begin() []byte { return append(append([]byte(`{"`), f.Key...), `":`...) }

// Decode checks what Encode returned and reads it into v. The error wraps
// [ErrCorrupt] or [ErrFutureVersion]; v is undefined then.
func (f Format) Decode(data []byte, v any) error {
	if len(data) > f.Max {
		return fmt.Errorf("it has %d bytes, more than the %d of a line: %w", len(data), f.Max, ErrCorrupt)
	}
	version, err := f.version(data)
	if err != nil {
		return err
	}
	_, err = f.Seal.Open(data)
	switch {
	case version > f.Version && (err == nil || f.File):
		return fmt.Errorf("its version is %d, and %d is known: %w: update lopen", version, f.Version, ErrFutureVersion)
	case err != nil:
		return err
	}
	if err := strictjson.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	return nil
}

// version reads the first member.
func (f Format) version(data []byte) (int, error) {
	rest, ok := bytes.CutPrefix(data, f.begin())
	digits, _, more := bytes.Cut(rest, []byte(","))
	version, err := strconv.Atoi(string(digits))
	if !ok || !more || err != nil || version < 1 || strconv.Itoa(version) != string(digits) {
		return 0, fmt.Errorf("it is no sealed line: %w", ErrCorrupt)
	}
	return version, nil
}
