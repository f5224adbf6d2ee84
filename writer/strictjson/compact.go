package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Check says what keeps data from being one JSON value to [UnmarshalForeign], which takes
// more than a Reader: lone surrogates, a name twice, 10,000 levels. It is faster
// where a Reader takes it, too.
func Check(data []byte) error {
	r := NewSharing(data)
	r.Value()
	r.End()
	if r.Err() == nil {
		return nil
	}
	_, rest, err := NextForeign(data)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("there is no value")
	case err == nil && len(bytes.TrimLeft(rest, " \t\r\n")) > 0:
		return fmt.Errorf("%s: something behind the value", place(data, len(data)-len(rest)))
	}
	return err
}

// AppendCompact appends to dst what [Check] takes, without the white space in it.
func AppendCompact(dst, data []byte) ([]byte, error) {
	if err := Check(data); err != nil {
		return dst, err
	}
	start := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = TextEnd(data, i+1)
		case ' ', '\n', '\r', '\t':
			dst = append(dst, data[start:i]...)
			start = i + 1
		}
	}
	return append(dst, data[start:]...), nil
}

// TextEnd returns the place of the quote that ends the string at i, of a valid text.
func TextEnd(data []byte, i int) int {
	for i = plain(data, i); data[i] == '\\'; i = plain(data, i+2) {
	}
	return i
}
