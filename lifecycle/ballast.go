package lifecycle

import (
	"crypto/rand"
	"errors"
	"io/fs"

	"github.com/lopen-dev/lopen/writer"
)

const (
	ballastFile = "ballast"
	// ballastBytes is given up on a full disk for one more commit.
	ballastBytes = 1 << 20
	// lowSpace is the room in bytes below which the log warns.
	lowSpace = 64 << 20
)

// keepBallast makes the store's reserve if it is not there and there is room
// for a good deal more. It is a reserve only: without it a full disk pauses at once.
func (s *Store) keepBallast() {
	free, err := writer.FreeBytes(s.root().Name())
	if low := err == nil && free < lowSpace; low != s.low.Swap(low) && low {
		s.opts.Logger.Warn().Uint64("free_bytes", free).Str("path", s.root().Name()).Msg("the disk is nearly full")
	}
	if info, err := s.root().Lstat(ballastFile); err == nil && info.Size() == ballastBytes {
		return
	}
	if !errors.Is(err, errors.ErrUnsupported) && (err != nil || free < 4*ballastBytes) {
		return
	}
	// Random, or a file system that compresses would keep nothing in reserve.
	data := make([]byte, ballastBytes)
	_, _ = rand.Read(data)
	if err := writer.ReplaceFile(s.root(), ballastFile, data, filePerm); err != nil {
		_ = s.root().Remove(ballastFile)
		s.opts.Logger.Debug().Err(err).Msg("no reserve for a full disk could be made")
	}
}

// giveUpBallast frees the reserve and says whether there was one.
func (s *Store) giveUpBallast() bool {
	err := s.root().Remove(ballastFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.opts.Logger.Warn().Err(err).Str("path", ballastFile).Msg("the reserve could not be given up")
	}
	return err == nil
}
