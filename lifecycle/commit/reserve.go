package commit

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/lopen-dev/lopen/writer"
	"github.com/rs/zerolog"
)

const (
	reserveFile = "ballast"
	// ReserveBytes is given up on a full disk for one more commit.
	ReserveBytes = 1 << 20
	// LowSpace is the free space in bytes below which a warning is logged.
	LowSpace = 64 << 20
)

// A Reserve is a file in the store that is removed on a full disk to make room for one more
// commit. All methods may be called from any goroutine.
type Reserve struct {
	Root   func() writer.FS // the store's folder
	Logger zerolog.Logger

	low atomic.Bool // the disk was nearly full at the last call of Keep
}

// Keep makes the reserve if it is missing and four times its size is free. Errors are only
// logged: without the reserve a full disk pauses a session at once.
func (r *Reserve) Keep() {
	root := r.Root()
	free, err := writer.FreeBytes(root.Name())
	if low := err == nil && free < LowSpace; low != r.low.Swap(low) && low {
		r.Logger.Warn().Uint64("free_bytes", free).Str("path", root.Name()).Msg("the disk is nearly full")
	}
	if r.Whole() {
		return
	}
	if !errors.Is(err, errors.ErrUnsupported) && (err != nil || free < 4*ReserveBytes) {
		return
	}
	// Random bytes, because a file system that compresses would reserve no space for zeros.
	data := make([]byte, ReserveBytes)
	_, _ = rand.Read(data)
	if err := writer.ReplaceFile(root, reserveFile, data, filePerm); err != nil {
		_ = root.Remove(reserveFile)
		r.Logger.Debug().Err(err).Msg("no reserve for a full disk could be made")
	}
}

// Whole reports whether the reserve exists with its full size.
func (r *Reserve) Whole() bool {
	info, err := r.Root().Lstat(reserveFile)
	return err == nil && info.Size() == ReserveBytes
}

// GiveUp removes the reserve and reports whether there was one.
func (r *Reserve) GiveUp() bool {
	err := r.Root().Remove(reserveFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Logger.Warn().Err(err).Str("path", reserveFile).Msg("the reserve could not be given up")
	}
	return err == nil
}
