package repair

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A sample has at most this much: it is to find what damages a disk, not a single byte.
const (
	sampleBytes = 64 << 20
	sampleBlobs = 1000
	sampleTime  = 2 * time.Second
)

// Sample reads some of the contents of checkpoints, within bounds, and says how many of them. The
// choice follows from which there are, so that a store that changes has another one. store is the
// path of .lopen.
func Sample(ctx context.Context, blobs *blob.Store, store string) Check {
	const name, all = "contents", "lopen session verify --read-data reads them all"
	hashes, err := listed(blobs)
	if err != nil {
		return Failed(name, err)
	}
	var seed blob.Hash
	for _, h := range hashes {
		for i := range h {
			seed[i] ^= h[i]
		}
	}
	rand.New(rand.NewPCG(binary.BigEndian.Uint64(seed[:]), uint64(len(hashes)))).Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] }) //nolint:gosec // chooses a sample
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	read, bytes := 0, int64(0)
	for _, h := range hashes {
		size, err := blobs.Size(h)
		if err == nil && bytes+size > sampleBytes {
			continue
		}
		if read == sampleBlobs || ctx.Err() != nil {
			break
		}
		if err == nil {
			err = blobs.VerifySized(ctx, h, size)
		}
		switch {
		case err == nil:
			read, bytes = read+1, bytes+size
		case ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist): // one that was swept meanwhile is fine
			return Check{Name: name, Found: fileOf(err, store) + ": " + err.Error(), Problem: true, Mend: all}
		}
	}
	found := fmt.Sprintf("%d of %d read and intact, %d bytes", read, len(hashes), bytes)
	if read < len(hashes) {
		found += fmt.Sprintf("; nothing is known of the other %d: %s", len(hashes)-read, all)
	}
	return Check{Name: name, Found: found}
}

// listed returns the contents that a store has. A pack whose index is damaged is an error.
func listed(blobs *blob.Store) (all []blob.Hash, err error) {
	for h, err := range blobs.All() {
		if err != nil {
			return nil, writer.NewError("list contents", blobsDir, writer.NotCommitted, err)
		}
		all = append(all, h)
	}
	return all, nil
}
