//go:build unix

package turns

import (
	"encoding/binary"
	"fmt"
	"io"
)

// maxFrame bounds what a Worker is given, in bytes.
const maxFrame = 32 << 20

// writeFrame writes data with its length before it: the pipe stays open behind it.
func writeFrame(w io.Writer, data []byte) error {
	if _, err := w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data)))); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return nil, fmt.Errorf("it has %d bytes, more than %d", n, maxFrame)
	}
	data := make([]byte, n)
	_, err := io.ReadFull(r, data)
	return data, err
}
