package journal_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// other is the session of the journals that these tests write anew.
const other = "auth-20260301-7"

// anew writes a journal anew up to a record: the change of every second record is another.
func anew(from, to writer.FS, upto uint64) error {
	return journal.Rewrite(from, to, journal.Rewriting{
		Session: other, Upto: upto,
		Body: func(r *journal.Ref, line, body []byte) ([]byte, error) {
			if !bytes.Contains(line, body) {
				return nil, fmt.Errorf("%s is no part of %s", body, line)
			}
			if r.Seq%2 == 0 {
				return nil, nil
			}
			return bytes.ReplaceAll(body, []byte("xxx"), []byte("y")), nil
		},
		Named: func(all []journal.Named) ([]journal.Named, error) {
			for i := range all {
				all[i].SHA256 = "ff" + all[i].SHA256[2:]
			}
			return all, nil
		},
	})
}

// members returns the number, the epoch and the body of a line.
func members(line string) string {
	frame, rest, _ := strings.Cut(line, `,"synced":`)
	_, body, _ := strings.Cut(rest, `:`)
	_, body, _ = strings.Cut(body, ",")
	return frame + " " + strings.ReplaceAll(body[:strings.LastIndex(body, `,"crc"`)], "xxx", "y")
}

// compare compares a journal with what anew made of it, up to a record.
func compare(t *testing.T, from, to writer.FS, upto uint64, named []journal.Named) {
	want, before := linesOf(t, from)
	got, log := linesOf(t, to)
	require.Equal(t, other, log.Session)
	require.Empty(t, log.Faults)
	require.NoError(t, log.ListErr)
	require.Zero(t, log.Lost)
	require.Equal(t, min(before.Begin(), upto+1), log.Begin())
	require.Equal(t, upto, log.Last())
	if upto >= log.Begin() {
		require.Equal(t, log.End(), log.Durable())
	}
	for seq, line := range want {
		if seq > upto {
			require.NotContains(t, got, seq)
			continue
		}
		require.Equal(t, members(line), strings.ReplaceAll(members(got[seq]), "xxx", "y"))
		require.Equal(t, min(before.Batch(seq), upto), log.Batch(seq), "what was appended with record %d", seq)
		for epoch := range uint64(6) {
			require.Equal(t, before.Holds(epoch, seq), log.Holds(epoch, seq), "record %d in epoch %d", seq, epoch)
		}
	}
	for _, n := range named {
		has := before.Named(n) && n.Seq <= upto
		n.SHA256 = "ff" + n.SHA256[2:]
		require.Equal(t, has, log.Named(n), "%v up to %d", n, upto)
	}
	for base := uint64(0); base <= upto; base += 7 {
		log, err := journal.Read(to, base, false)
		require.NoError(t, err)
		require.Zero(t, log.Lost)
	}
}

// TestRewrittenJournals writes random journals anew, with packed and dropped segments and
// records that were given up, and resumes them.
func TestRewrittenJournals(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 1))
		disk := crashfs.New(crashfs.Ext4)
		p := newPast(t, disk.FS())
		p.work(1)
		for range 1 + rng.IntN(8) {
			switch rng.IntN(6) {
			case 0:
				p.packAll()
			case 1:
				require.NoError(t, p.drop(1+rng.IntN(5)))
			case 2:
				p.resume()
			case 3: // a segment is given up, with records that were not acknowledged
				n := 0
				disk.SetHook(func(op crashfs.Op) crashfs.Fault {
					if n++; op.Call == "datasync" {
						return crashfs.Fault{Err: syscall.EIO}
					}
					return crashfs.Fault{}
				})
				_, err := p.w.Append(body(1000), entry(1001))
				require.Error(t, err)
				disk.SetHook(nil)
				require.NoError(t, p.w.Reopen())
			default:
				p.work(1 + rng.IntN(25))
			}
		}
		log, err := journal.Read(p.dir, 0, true)
		require.NoError(t, err)
		for _, upto := range []uint64{log.Last(), 1 + rng.Uint64N(log.Last())} {
			if upto < log.Begin() { // of what was dropped only a record that is there can be the last one
				upto = log.Records[0].Seq
			}
			to := crashfs.New(crashfs.Ext4).FS()
			require.NoError(t, anew(p.dir, to, upto), "seed %d, up to %d", seed, upto)
			compare(t, p.dir, to, upto, p.named)
			now := read(t, to, 0)
			if upto < now.Begin() {
				continue // as an inherited log may end, which nobody resumes
			}
			w, err := journal.Open(to, other, now)
			require.NoError(t, err)
			at, err := w.Append(body(1))
			require.NoError(t, err)
			require.Equal(t, upto+1, at.Seq)
			require.NoError(t, w.Close())
			require.Empty(t, read(t, to, 0).Faults)
		}
	}
}

// TestRewrittenJournalIsDurable cuts the power right behind a rewrite, and fails each call.
func TestRewrittenJournalIsDurable(t *testing.T) {
	t.Parallel()
	p := pastOf(t, crashfs.New(crashfs.Ext4).FS())
	upto := p.w.Last().Seq
	for k := 1; ; k++ {
		disk := crashfs.New(crashfs.XFS)
		n, hit := 0, ""
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if n++; n == k {
				hit = op.Call
				return crashfs.Fault{Err: syscall.EIO}
			}
			return crashfs.Fault{}
		})
		err := anew(p.dir, disk.FS(), upto)
		disk.SetHook(nil)
		if n >= k {
			if hit != "remove" {
				require.ErrorIs(t, err, syscall.EIO, "call %d, %s", k, hit)
			}
			continue
		}
		require.NoError(t, err)
		for _, v := range disk.Variants(nil, 0) {
			compare(t, p.dir, disk.Crash(v).FS(), upto, p.named)
		}
		return
	}
}

func TestNoRewriteOfADamagedJournal(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := createWith(t, dir, 300, 20)
	require.NoError(t, w.Close())
	flip(t, dir, ref(t, read(t, dir, 0), 5))
	require.NoError(t, anew(dir, open(t), 4), "the damage is behind them")
	err := anew(dir, open(t), 20)
	require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err))
	require.ErrorContains(t, err, "record 5")
	require.ErrorContains(t, err, dir.Name())

	torn := open(t)
	w = create(t, torn, 3)
	require.NoError(t, w.Close())
	put(t, torn, first, append(text(t, torn, first), `{"seq":4,"epo`...))
	to := open(t)
	require.NoError(t, anew(torn, to, 3), "a torn end is no damage")
	require.Empty(t, read(t, to, 0).Faults)
	require.Equal(t, writer.ClassCorrupt, writer.ClassOf(anew(torn, open(t), 4)), "there is no such record")
}

func TestRewriteRefusesALongRecord(t *testing.T) {
	t.Parallel()
	dir := open(t)
	require.NoError(t, create(t, dir, 3).Close())
	err := journal.Rewrite(dir, open(t), journal.Rewriting{Upto: 3, Body: func(*journal.Ref, []byte, []byte) ([]byte, error) {
		return make([]byte, journal.MaxBody+1), nil
	}})
	require.Equal(t, writer.ClassInvalid, writer.ClassOf(err))
	require.ErrorContains(t, err, "record 1")
}

// Records that were dropped after others were written anew make a rewrite begin again.
func TestDropDuringARewrite(t *testing.T) {
	t.Parallel()
	p := pastOf(t, crashfs.New(crashfs.Ext4).FS())
	dropped := false
	err := journal.Rewrite(p.dir, open(t), journal.Rewriting{Upto: p.w.Last().Seq, Body: func(r *journal.Ref, _, _ []byte) ([]byte, error) {
		if r.Seq > 20 && !dropped {
			dropped = true
			p.packAll()
			require.NoError(t, p.drop(2))
		}
		return nil, nil
	}})
	require.True(t, dropped)
	require.ErrorIs(t, err, fs.ErrNotExist)
	to := open(t)
	require.NoError(t, anew(p.dir, to, p.w.Last().Seq))
	compare(t, p.dir, to, p.w.Last().Seq, p.named)
}
