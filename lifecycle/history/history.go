// Package history keeps whole States beside a session's journal: a file for each,
// named by the number of the record that it is of, compressed with zstd. Its two
// lines are the contents of state.json and metrics.json.
//
// # Crash safety
//
// Write returns nil when the file is durable under its name; a crash before leaves
// none or the one that was there. Who names a snapshot in a record notes the
// checksum that Write returns, and Read refuses any other content.
package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/lopen-dev/lopen/writer"
)

// Dir is the folder's name in that of a session.
const Dir = "history"

// MaxBytes bounds what is read of one snapshot, before and after decompression.
const MaxBytes = 2 << 30

// Name is the path of the snapshot of a record, below the session's folder.
func Name(seq uint64) string { return fmt.Sprintf("%s/%d.json.zst", Dir, seq) }

// Write makes a snapshot durable and returns the SHA-256 of its content before
// compression, in hex. Only the holder of the session's lease may call it.
func Write(dir writer.FS, seq uint64, state, metrics []byte) (string, error) {
	if err := writer.MkdirDurable(dir, Dir); err != nil {
		return "", err
	}
	sum := sha256.New()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return "", fmt.Errorf("compress snapshot %d: %w", seq, err)
	}
	both := io.MultiWriter(sum, z)
	for _, part := range [][]byte{state, metrics} {
		if _, err := both.Write(part); err != nil {
			return "", fmt.Errorf("compress snapshot %d: %w", seq, err)
		}
	}
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("compress snapshot %d: %w", seq, err)
	}
	if err := writer.ReplaceFile(dir, Name(seq), out.Bytes(), 0o600); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Read returns the contents of state.json and metrics.json of a record. sum is
// what Write returned. The error has class corrupt when the content is another.
func Read(dir writer.FS, seq uint64, sum string) (state, metrics []byte, err error) {
	packed, err := writer.ReadFile(dir, Name(seq), MaxBytes)
	if err != nil {
		return nil, nil, err
	}
	content, err := unpack(packed)
	if have := sha256.Sum256(content); err == nil && hex.EncodeToString(have[:]) != sum {
		err = fmt.Errorf("the content has not the checksum %s", sum)
	}
	state, metrics, two := bytes.Cut(content, []byte("\n"))
	if err == nil && !two {
		err = fmt.Errorf("the second line is missing")
	}
	if err != nil {
		return nil, nil, &writer.Error{Op: "read snapshot", Path: filepath.Join(dir.Name(), Name(seq)), Class: writer.ClassCorrupt, Err: err}
	}
	return content[:len(state)+1], metrics, nil
}

func unpack(packed []byte) ([]byte, error) {
	z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	content, err := io.ReadAll(io.LimitReader(z, MaxBytes+1))
	if err == nil && len(content) > MaxBytes {
		err = fmt.Errorf("it is larger than %d bytes", MaxBytes)
	}
	return content, err
}
