package journal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// three makes a journal of three segments and nine records. With epoch set the last segment
// is the first of a new epoch. Only record 9 is not proved to be durable.
func three(t testing.TB, epoch bool) (dir writer.FS, files []string) {
	t.Helper()
	dir = open(t)
	w := create(t, dir, 3)
	w.Full()
	add(t, w, 4, 6)
	if epoch {
		w = reopen(t, dir)
	} else {
		w.Full()
	}
	add(t, w, 7, 9)
	require.NoError(t, w.Close())
	log := read(t, dir, 0)
	require.Empty(t, log.Faults)
	require.NoError(t, log.ListErr)
	return dir, names(t, dir)
}

// damagedList checks that nothing is lost but the list, and that the next Open mends it.
func damagedList(t *testing.T, dir writer.FS) {
	t.Helper()
	for _, all := range []bool{true, false} {
		log, err := journal.Read(dir, 5, all)
		require.NoError(t, err)
		require.Error(t, log.ListErr)
		require.Zero(t, log.Lost)
		require.Empty(t, log.Faults)
		require.Equal(t, count(6, 9), bodies(t, log, log.Above(5)))
	}
	part, err := journal.Read(dir, 8, false)
	require.NoError(t, err)
	w, err := journal.Open(dir, id, part)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	log := read(t, dir, 0)
	require.NoError(t, log.ListErr)
	require.Empty(t, log.Faults)
	require.Equal(t, count(1, 9), bodies(t, log, log.Records))
	for _, n := range names(t, dir) { // the list has all segments again
		line, _, _ := bytes.Cut(content(t, dir, n), []byte("\n"))
		require.Contains(t, string(content(t, dir, journal.ListFile)), string(line)+"\n")
	}
}

func TestListThatIsLost(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, file string, data []byte){
		"missing": func(t *testing.T, file string, _ []byte) { require.NoError(t, os.Remove(file)) },
		"emptied": func(t *testing.T, file string, _ []byte) { require.NoError(t, os.Truncate(file, 0)) },
		"zeros": func(t *testing.T, file string, data []byte) {
			require.NoError(t, os.WriteFile(file, make([]byte, len(data)), 0o600))
		},
		"too long": func(t *testing.T, file string, _ []byte) { require.NoError(t, os.Truncate(file, 1<<30)) },
		"a folder": func(t *testing.T, file string, _ []byte) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Mkdir(file, 0o700))
		},
		"another session's": func(t *testing.T, file string, _ []byte) {
			other := open(t)
			w, err := journal.Create(other, "other-20260214-1")
			require.NoError(t, err)
			for range 4 { // segments with the same names that continue from other records
				add(t, w, int(w.Last().Seq)+1, int(w.Last().Seq)+1)
				w.Full()
			}
			require.NoError(t, w.Close())
			require.NoError(t, os.WriteFile(file, content(t, other, journal.ListFile), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, epoch := range []bool{false, true} {
				dir, _ := three(t, epoch)
				damage(t, filepath.Join(dir.Name(), journal.ListFile), content(t, dir, journal.ListFile))
				if name == "a folder" {
					log := read(t, dir, 0)
					require.Error(t, log.ListErr)
					require.Equal(t, count(1, 9), bodies(t, log, log.Records))
					continue // Open cannot replace a folder by a file
				}
				damagedList(t, dir)
			}
		})
	}
}

// Nothing is lost when any byte of the list is flipped, or the list is cut at any byte.
func TestListThatIsDamaged(t *testing.T) {
	t.Parallel()
	dir, _ := three(t, true)
	whole := content(t, dir, journal.ListFile)
	for at := range whole {
		for _, data := range [][]byte{flippedAt(whole, int64(at)), whole[:at]} {
			put(t, dir, journal.ListFile, data)
			log, err := journal.Read(dir, 0, at%2 == 0)
			require.NoError(t, err)
			if len(data) == len(whole) || at == 0 || data[at-1] != '\n' {
				require.Error(t, log.ListErr, "at %d", at)
			}
			require.Zero(t, log.Lost, "at %d", at)
			require.Empty(t, log.Faults, "at %d", at)
			require.Equal(t, count(1, 9), seqs(log.Records), "at %d", at)
		}
	}
	damagedList(t, dir)
}

// An older copy of the list lacks segments, or names some that are gone by now.
func TestOlderList(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 3)
	older := content(t, dir, journal.ListFile)
	w.Full()
	add(t, w, 4, 6)
	put(t, dir, journal.ListFile, older)
	for _, all := range []bool{true, false} {
		log, err := journal.Read(dir, 5, all)
		require.NoError(t, err)
		require.Zero(t, log.Lost)
		require.Empty(t, log.Faults)
		require.Equal(t, count(6, 6), seqs(log.Above(5)))
	}
	w.Full()
	add(t, w, 7, 9)
	line, _, _ := bytes.Cut(content(t, dir, "journal-1-2.jsonl"), []byte("\n"))
	require.Contains(t, string(content(t, dir, journal.ListFile)), string(line), "the writer knows them all")
}

// When the newest segment is missing, emptied, all zeros, or cut within its first line, it is
// reported, because it may have held records. The other segments are not affected.
func TestNewestSegmentIsLost(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, file string, head int64){
		"missing": func(t *testing.T, file string, _ int64) { require.NoError(t, os.Remove(file)) },
		"emptied": func(t *testing.T, file string, _ int64) { require.NoError(t, os.Truncate(file, 0)) },
		"cut":     func(t *testing.T, file string, head int64) { require.NoError(t, os.Truncate(file, head-1)) },
		"zeros": func(t *testing.T, file string, _ int64) {
			require.NoError(t, os.WriteFile(file, make([]byte, 64<<10), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, epoch := range []bool{false, true} {
				dir, files := three(t, epoch)
				newest := files[2]
				damage(t, filepath.Join(dir.Name(), newest), int64(bytes.IndexByte(content(t, dir, newest), '\n'))+1)
				for _, base := range []uint64{0, 5, 6, 7} {
					for _, all := range []bool{true, false} {
						log, err := journal.Read(dir, base, all)
						require.NoError(t, err)
						last := uint64(6)
						if epoch { // the original of the copied record is settled; Salvage takes it
							log.Faults = slices.DeleteFunc(log.Faults, func(f journal.Fault) bool { return f.Kind == journal.Settled })
							last = 5
						}
						require.Equal(t, max(base, last)+1, log.Lost, "%s, base %d", newest, base)
						require.Equal(t, []journal.Kind{journal.Damaged}, kinds(log))
						require.Equal(t, newest, log.Faults[0].Segment)
						require.Equal(t, count(int(base)+1, int(last)), bodies(t, log, log.Above(base)))
						if all {
							require.Equal(t, []journal.Gap{{First: last + 1}}, log.Gaps())
						}
					}
				}
				require.False(t, read(t, dir, 0).Empty())
			}
		})
	}
}

// Without any segment the list still shows that there was a session.
func TestEverySegmentIsLost(t *testing.T) {
	t.Parallel()
	dir, files := three(t, true)
	for _, n := range files {
		require.NoError(t, os.Remove(filepath.Join(dir.Name(), n)))
	}
	log := read(t, dir, 0)
	require.False(t, log.Empty())
	require.Equal(t, id, log.Session)
	require.EqualValues(t, 1, log.Lost)
	require.Equal(t, []journal.Gap{{First: 1}}, log.Gaps())
	require.NotZero(t, read(t, dir, 9).Lost)
}

// When the first segment is missing, its records are lost. A segment that is there is not
// reported as missing.
func TestFirstSegmentIsLost(t *testing.T) {
	t.Parallel()
	dir, files := three(t, false)
	require.NoError(t, os.Remove(filepath.Join(dir.Name(), files[0])))
	require.Equal(t, files[0]+" is missing or empty (record 1)", read(t, dir, 0).Faults[0].String())
	require.NoError(t, os.Remove(filepath.Join(dir.Name(), journal.ListFile)))
	require.Equal(t, files[1]+": what it goes on from is missing (record 1)", read(t, dir, 0).Faults[0].String())

	p := pastOf(t, open(t))
	p.packAll()
	require.NoError(t, p.drop(4))
	all, err := p.w.Segments(held)
	require.NoError(t, err)
	require.True(t, all[0].Reduced())
	gone := slices.Min(segmentNames(t, p.dir))
	require.NoError(t, p.dir.Remove(gone))
	log := read(t, p.dir, all[1].First())
	require.Equal(t, []journal.Fault{{Kind: journal.Damaged, Segment: gone, Seq: 1}}, log.Faults)
	require.Zero(t, log.Lost, "the State does not rest on it")
	require.Equal(t, []journal.Gap{{First: 1, Last: all[1].First() - 1}}, read(t, p.dir, 0).Gaps())
	for part, err := range journal.Parts(p.dir) {
		require.NoError(t, err)
		require.Equal(t, log.Faults, part.Faults)
		break
	}
}

// A segment in the middle that is missing or emptied costs its records.
func TestMiddleSegmentIsLost(t *testing.T) {
	t.Parallel()
	for _, epoch := range []bool{false, true} {
		for _, remove := range []bool{false, true} {
			for _, list := range []bool{false, true} {
				dir, files := three(t, epoch)
				want := files[1]
				require.NoError(t, os.Truncate(filepath.Join(dir.Name(), files[1]), 0))
				if remove {
					require.NoError(t, os.Remove(filepath.Join(dir.Name(), files[1])))
				}
				if !list {
					require.NoError(t, os.Remove(filepath.Join(dir.Name(), journal.ListFile)))
					want = files[2] // its header names the record that is missing
				}
				log := read(t, dir, 0)
				require.EqualValues(t, 4, log.Lost)
				require.Equal(t, []journal.Kind{journal.Damaged}, kinds(log))
				require.Equal(t, want, log.Faults[0].Segment)
				require.Equal(t, !list, log.Faults[0].Before)
				got := []int{1, 2, 3, 7, 8, 9}
				if epoch {
					got = []int{1, 2, 3, 6, 7, 8, 9} // of record 6 there is a copy
				}
				require.Equal(t, got, bodies(t, log, log.Records))
				require.Equal(t, []journal.Gap{{First: 4, Last: uint64(got[3]) - 1}}, log.Gaps())
				require.Zero(t, read(t, dir, 6).Lost)
			}
		}
	}
}

// No record is lost when any byte of a first line is flipped, its line feed included.
func TestFirstLineIsDamaged(t *testing.T) {
	t.Parallel()
	for _, epoch := range []bool{false, true} {
		dir, files := three(t, epoch)
		for _, n := range files {
			whole := content(t, dir, n)
			head := bytes.IndexByte(whole, '\n') + 1
			for at := range head {
				for _, b := range []byte{whole[at] ^ 1, '\n', 0} {
					data := slices.Clone(whole)
					if data[at] = b; b == whole[at] {
						continue
					}
					put(t, dir, n, data)
					log := read(t, dir, 0)
					require.Zero(t, log.Lost, "%s at %d", n, at)
					require.Equal(t, []journal.Fault{{Kind: journal.Damaged, Segment: n, Length: int64(head)}}, log.Faults)
					require.Equal(t, count(1, 9), seqs(log.Records), "%s at %d", n, at)
				}
			}
			require.Equal(t, count(1, 9), bodies(t, read(t, dir, 0), read(t, dir, 0).Records))
			part, err := journal.Read(dir, 8, false)
			require.NoError(t, err)
			require.Equal(t, count(9, 9), seqs(part.Above(8)))
			// The next epoch continues.
			other := open(t)
			require.NoError(t, os.CopyFS(other.Name(), os.DirFS(dir.Name())))
			add(t, reopen(t, other), 10, 11)
			require.Equal(t, count(1, 11), seqs(read(t, other, 0).Records))
			// When the list is gone too, the records are reported as lost.
			require.NoError(t, os.Remove(filepath.Join(other.Name(), journal.ListFile)))
			list := content(t, dir, journal.ListFile)
			for _, less := range [][]byte{nil, list[:bytes.LastIndexByte(list[:len(list)-1], '\n')+1]} { // no list, and an older one
				if n == files[2] {
					put(t, dir, journal.ListFile, less)
					log := read(t, dir, 0)
					require.EqualValues(t, 7, log.Lost)
					require.Contains(t, kinds(log), journal.Damaged)
				}
			}
			put(t, dir, journal.ListFile, list)
			put(t, dir, n, whole)
		}
	}
}

// Any byte of any segment is flipped. The flip is damage, and costs the record that it is in,
// unless it looks like a torn tail.
func TestEveryByteOfEverySegment(t *testing.T) {
	t.Parallel()
	dir, files := three(t, true)
	before := read(t, dir, 0)
	last := ref(t, before, 9)
	for _, n := range files {
		whole := content(t, dir, n)
		for at := range len(text(t, dir, n)) {
			put(t, dir, n, flippedAt(whole, int64(at)))
			log := read(t, dir, 0)
			want, lost := count(1, 9), uint64(0)
			for _, r := range before.Records {
				if r.Segment() == n && int64(at) >= r.Offset && int64(at) < r.Offset+r.Length {
					want, lost = slices.DeleteFunc(want, func(k int) bool { return k == int(r.Seq) }), r.Seq
				}
			}
			kind := journal.Damaged
			switch {
			case n == last.Segment() && int64(at) >= last.Offset: // nothing proves that it was durable
				kind, lost = journal.Torn, 0
			case n == files[1] && lost == 0 && at > bytes.IndexByte(whole, '\n'): // record 6, of which the copy counts
				kind = journal.Settled
			}
			require.Equal(t, want, seqs(log.Records), "%s at %d", n, at)
			require.Equal(t, lost, log.Lost, "%s at %d", n, at)
			if log.Lost == 6 && n == files[2] { // the original of the copy is settled; Salvage takes it
				require.Equal(t, journal.Settled, log.Faults[0].Kind)
				log.Faults = log.Faults[1:]
				whole, err := journal.Salvage(dir, id)
				require.NoError(t, err)
				require.Equal(t, count(1, 9), seqs(whole.Records))
			}
			require.Equal(t, []journal.Kind{kind}, kinds(log), "%s at %d", n, at)
		}
		put(t, dir, n, whole)
	}
}

// A writer that has lost its lease and rotates does not change the list if Confirm is set.
// Without Confirm it changes the list, and nothing is lost either.
func TestStaleWriterRotates(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{true, false} {
		dir := open(t)
		stale := create(t, dir, 3)
		if asks {
			stale.Confirm = func() error { return &writer.Error{Op: "confirm", Class: writer.ClassFenced} }
		}
		w := reopen(t, dir)
		add(t, w, 4, 5)
		list := content(t, dir, journal.ListFile)
		stale.Full()
		_, err := stale.Append(body(104))
		if asks {
			require.Equal(t, writer.ClassFenced, writer.ClassOf(err))
			require.Equal(t, list, content(t, dir, journal.ListFile))
			require.Equal(t, []string{first, "journal-2-1.jsonl"}, names(t, dir))
		} else {
			require.NoError(t, err)
		}
		log := read(t, dir, 0)
		require.Zero(t, log.Lost)
		require.Equal(t, count(1, 5), bodies(t, log, log.Records))
		require.NotContains(t, kinds(log), journal.Damaged)
		require.EqualValues(t, 5, log.Last())
		require.EqualValues(t, 4, log.Durable().Seq)
		w.Full()
		add(t, w, 6, 7)
		log = read(t, dir, 0)
		require.NoError(t, log.ListErr)
		require.Equal(t, count(1, 7), bodies(t, log, log.Records))
		require.NotContains(t, kinds(log), journal.Damaged)
		require.NoError(t, os.Remove(filepath.Join(dir.Name(), "journal-2-2.jsonl")))
		require.EqualValues(t, 6, read(t, dir, 0).Lost, "the list is right again")
	}
}
