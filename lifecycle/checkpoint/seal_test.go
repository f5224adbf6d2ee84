package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// sealed gives a manifest the checksum of its content.
func sealed(data []byte) []byte {
	if i := bytes.LastIndex(data, []byte(sumKey)); i >= 0 {
		data = data[:i]
	}
	sum := sha256.Sum256(data)
	return []byte(string(data) + sumKey + hex.EncodeToString(sum[:]) + tail)
}
