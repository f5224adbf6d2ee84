package journal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// TestLostLeaseEndsARewrite shows that a writer without the lease changes nothing that counts.
func TestLostLeaseEndsARewrite(t *testing.T) {
	t.Parallel()
	for k := 1; k <= 2; k++ {
		p := newPast(t, crashfs.New(crashfs.Ext4).FS())
		p.work(20)
		want, _ := linesOf(t, p.dir)
		list, err := writer.ReadFile(p.dir, journal.ListFile, 1<<20)
		require.NoError(t, err)
		lost, n := errors.New("it is lost"), 0
		_, err = p.w.Pack(smallSegment, func() error {
			if n++; n >= k {
				return lost
			}
			return nil
		})
		require.ErrorIs(t, err, lost)
		now, err := writer.ReadFile(p.dir, journal.ListFile, 1<<20)
		require.NoError(t, err)
		require.Equal(t, string(list), string(now))
		got, log := linesOf(t, p.dir)
		require.Equal(t, want, got)
		require.Empty(t, log.Faults)
	}
}

// TestReadersDuringRewrite shows that a reader without a lock sees all records at any moment.
func TestReadersDuringRewrite(t *testing.T) {
	t.Parallel()
	p := newPast(t, crashfs.New(crashfs.Ext4).FS())
	p.work(10)
	want, _ := linesOf(t, p.dir)
	stop, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for {
			select {
			case <-stop:
				return
			default:
			}
			log, err := journal.Read(p.dir, 0, true)
			if err != nil {
				failed <- err
				return
			}
			got := map[uint64]string{}
			err = log.Lines(log.Records, func(r *journal.Ref, line []byte) error {
				got[r.Seq] = string(line)
				return nil
			})
			switch {
			case errors.Is(err, fs.ErrNotExist): // the records were dropped meanwhile
			case err != nil:
				failed <- err
				return
			case log.Lost > 0 || len(got) < len(want):
				failed <- fmt.Errorf("%d records, record %d is lost: %v", len(got), log.Lost, log.Faults)
				return
			}
		}
	}()
	for i := range 60 {
		p.work(10)
		p.packAll()
		if i%5 == 4 {
			require.NoError(t, p.drop(2))
		}
	}
	close(stop)
	require.NoError(t, <-failed)
}

// TestCommitsDuringRewrite appends and opens segments while another goroutine rewrites.
func TestCommitsDuringRewrite(t *testing.T) {
	t.Parallel()
	p := newPast(t, crashfs.New(crashfs.Ext4).FS())
	p.work(10)
	done := make(chan error)
	go func() {
		for range 30 {
			if _, err := p.w.Pack(smallSegment, held); err != nil {
				done <- err
				return
			}
		}
		close(done)
	}()
	p.work(200)
	require.NoError(t, <-done)
	got, log := linesOf(t, p.dir)
	require.Len(t, got, 2*p.n)
	require.Empty(t, log.Faults)
	require.NoError(t, log.ListErr)
}
