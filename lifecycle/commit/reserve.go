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
	// LowSpace is the room in bytes below which the log warns.
	LowSpace = 64 << 20
)

// A Reserve is a file of a store that is given up on a full disk. All methods may be called
// from any goroutine.
type Reserve struct {
	Root   func() writer.FS // the store's folder
	Logger zerolog.Logger

	low atomic.Bool // the disk was nearly full when it was looked at last
}

// Keep makes the reserve if it is not there and there is room
// for a good deal more. It is a reserve only: without it a full disk pauses at once.
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
	// Random, or a file system that compresses would keep nothing in reserve.
	data := make([]byte, ReserveBytes)
	_, _ = rand.Read(data)
	if err := writer.ReplaceFile(root, reserveFile, data, filePerm); err != nil {
		_ = root.Remove(reserveFile)
		r.Logger.Debug().Err(err).Msg("no reserve for a full disk could be made")
	}
}

// Whole says whether the reserve is there.
func (r *Reserve) Whole() bool {
	info, err := r.Root().Lstat(reserveFile)
	return err == nil && info.Size() == ReserveBytes
}

// GiveUp frees the reserve and says whether there was one.
func (r *Reserve) GiveUp() bool {
	err := r.Root().Remove(reserveFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Logger.Warn().Err(err).Str("path", reserveFile).Msg("the reserve could not be given up")
	}
	return err == nil
}
