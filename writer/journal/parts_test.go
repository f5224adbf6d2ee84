package journal_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// parted returns all that Parts yields for a folder.
func parted(t require.TestingT, dir writer.FS) (refs []journal.Ref, faults []journal.Fault) {
	for part, err := range journal.Parts(dir) {
		require.NoError(t, err)
		require.NoError(t, part.Lines(part.Records, func(r *journal.Ref, _ []byte) error {
			require.Equal(t, part.Segment, r.Segment())
			return nil
		}))
		refs, faults = append(refs, part.Records...), append(faults, part.Faults...)
	}
	return refs, faults
}

// TestPartsHaveWhatReadHas damages journals of several epochs, some packed and some with
// records that were given up, and reads each with Read and with Parts.
func TestPartsHaveWhatReadHas(t *testing.T) {
	t.Parallel()
	gaps := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dir := crashfs.New(crashfs.Ext4).FS()
		p := newPast(t, dir)
		for range 1 + rng.IntN(4) {
			p.work(1 + rng.IntN(12))
			switch rng.IntN(4) {
			case 0:
				p.packAll()
			case 1: // a writer that has lost its lease appends
				lost := p.w
				p.resume()
				_, err := lost.Append(body(999))
				require.NoError(t, err)
			default:
				p.resume()
			}
		}
		if seed%5 == 4 {
			require.NoError(t, p.drop(2))
		}
		want, _ := parted(t, dir)
		require.Equal(t, seqs(read(t, dir, 0).Records), seqs(want), "seed %d", seed)
		for range 1 + rng.IntN(3) {
			all := segmentNames(t, dir)
			name := all[rng.IntN(len(all))]
			data, err := writer.ReadFile(dir, name, 1<<20)
			require.NoError(t, err)
			if rng.IntN(6) == 0 {
				require.NoError(t, dir.Remove(name))
			} else {
				data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
				require.NoError(t, writer.ReplaceFile(dir, name, data, 0o600))
			}
		}
		log := read(t, dir, 0)
		refs, faults := parted(t, dir)
		require.Equal(t, seqs(log.Records), seqs(refs), "seed %d", seed)
		for i := 1; i < len(refs); i++ { // a fault reports each gap
			first, next := refs[i-1].Seq+1, refs[i].Seq
			if first < next && next >= log.Begin() {
				gaps++
				require.True(t, slices.ContainsFunc(faults, func(f journal.Fault) bool {
					return f.Kind == journal.Damaged && f.Seq >= first && f.Seq <= next
				}), "seed %d: %d to %d: %v", seed, first, next, faults)
			}
		}
	}
	require.Greater(t, gaps, 50)
}

func TestBatch(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 1)
	_, err := w.Append(entry(2), entry(3), body(4))
	require.NoError(t, err)
	_, err = w.Append(entry(5))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	w = reopen(t, dir)
	_, err = w.Append(entry(6), body(7))
	require.NoError(t, err)
	log := read(t, dir, 0)
	got := []uint64{}
	for seq := range uint64(8) {
		got = append(got, log.Batch(seq+1))
	}
	require.Equal(t, []uint64{1, 4, 4, 4, 5, 7, 7, 8}, got)
}
