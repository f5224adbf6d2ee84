package journal_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// power is a journal on a disk that can lose power, with the records that must be found there.
type power struct {
	t      testing.TB
	d      *crashfs.Disk
	w      *journal.Writer
	kill   bool // a call that fails ends the process
	n      int  // the last record that was tried; each has another number
	acked  []int
	flying []int // not acknowledged: any number of them, from the first on, may be there

	rng    *rand.Rand
	random int
	looked *atomic.Int64
}

func (p *power) append(size int) {
	p.t.Helper()
	for {
		var all []journal.Record
		p.flying = nil
		for i := range size {
			p.n++
			p.flying = append(p.flying, p.n)
			all = append(all, journal.Record{Body: fmt.Appendf(nil, `"n":%d,"pad":"%0200d"`, p.n, 0), Entry: i%2 == 1})
		}
		_, err := p.w.Append(all...)
		if err == nil {
			p.acked, p.flying = append(p.acked, p.flying...), nil
			return
		}
		p.mend()
	}
}

// mend continues after an error: in the same process or, with kill, in the next one.
func (p *power) mend() {
	p.t.Helper()
	if p.kill {
		p.takeover()
		return
	}
	for p.w.Reopen() != nil {
	}
	p.flying = nil // the new segment voids them
}

func (p *power) note() {
	if p.w.Note(journal.Named{File: "state.json", Epoch: p.w.Last().Epoch, Seq: p.w.Last().Seq}) != nil && p.kill {
		p.takeover()
	}
}

func (p *power) full() { p.w.Full() }

func (p *power) close() {
	if p.w.Close() != nil {
		p.takeover()
	}
}

// takeover opens the journal as the next process, until that succeeds.
func (p *power) takeover() {
	p.t.Helper()
	for {
		log, got, bad := p.look(p.d)
		require.Empty(p.t, bad, "taken over")
		w, err := journal.Open(p.d.FS(), id, log)
		if err != nil {
			continue
		}
		w.Limit = 4 << 10
		p.w, p.acked, p.flying = w, got, nil
		require.EqualValues(p.t, len(got), w.Last().Seq)
		return
	}
}

// look reads the journal on a disk. bad says what is wrong with it.
func (p *power) look(d *crashfs.Disk) (log *journal.Log, got []int, bad string) {
	p.looked.Add(1)
	log, err := journal.Read(d.FS(), 0, true)
	require.NoError(p.t, err)
	got = bodies(p.t, log, log.Records)
	most := append(slices.Clone(p.acked), p.flying...)
	switch {
	case len(got) < len(p.acked) || len(got) > len(most) || !slices.Equal(got, most[:len(got)]):
		bad = fmt.Sprintf("records %v, acknowledged are %v, and %v were tried; %v", got, p.acked, p.flying, log.Faults)
	case log.Lost != 0:
		bad = fmt.Sprintf("record %d is lost: %v", log.Lost, log.Faults)
	case p.w != nil && log.ListErr != nil:
		bad = log.ListErr.Error()
	case slices.ContainsFunc(log.Faults, func(f journal.Fault) bool { return f.Kind == journal.Damaged }):
		bad = fmt.Sprint(log.Faults)
	}
	return log, got, bad
}

// cut checks every outcome of a power cut now. In some of them two more epochs follow.
func (p *power) cut(d *crashfs.Disk, where string) {
	for i, v := range d.Variants(p.rng, p.random) {
		after := d.Crash(v)
		if _, _, bad := p.look(after); bad != "" {
			p.t.Fatalf("%s, %s: %s", where, v.Name, bad)
		}
		if i%5 != 0 || p.w == nil {
			continue
		}
		q := &power{t: p.t, d: after, n: 1000, acked: p.acked, flying: p.flying, looked: p.looked}
		q.takeover()
		q.append(2)
		q.takeover()
		q.append(1)
		if _, _, bad := q.look(after); bad != "" {
			p.t.Fatalf("%s, %s, two epochs later: %s", where, v.Name, bad)
		}
	}
}

func (p *power) create() {
	for {
		w, err := journal.Create(p.d.FS(), id)
		if err == nil {
			w.Limit = 4 << 10
			p.w = w
			return
		}
		*p.d = *crashfs.New(crashfs.Ext4) // the session does not exist yet: begin again
	}
}

var deep = flag.Bool("deep", false, "let every call fail where a short run lets a few")

var lives = map[string]func(p *power){
	"one process": func(p *power) {
		p.append(1)
		p.append(3)
		p.note()
		p.append(2)
		p.full()
		p.append(1)
		p.note()
		p.note()
		for range 4 {
			p.append(3) // beyond the limit of a segment
		}
		p.note()
		p.close()
	},
	"takeovers": func(p *power) {
		p.append(1)
		p.append(3)
		p.takeover()
		p.append(1)
		p.takeover()
		p.takeover()
		p.append(2)
		p.full()
		p.append(2)
		p.takeover()
		p.takeover()
		p.append(1)
	},
	"between a note and a record": func(p *power) {
		p.append(2)
		p.note()
		p.takeover()
		p.note()
		p.takeover()
		p.append(1)
		p.append(2)
		p.note()
		p.full()
		p.takeover()
		p.append(1)
		p.note()
		p.close()
		p.takeover()
		p.append(1)
	},
}

// The power is cut before every call of a life, in every variant. All acknowledged records
// are there, no others but those of the call in progress, and nothing counts as damage.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	var looked atomic.Int64
	for name, life := range lives {
		for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				t.Parallel()
				p := &power{t: t, d: crashfs.New(mode), rng: rand.New(rand.NewPCG(7, 8)), random: 5, looked: &looked}
				p.d.SetHook(func(op crashfs.Op) crashfs.Fault {
					if op.N > 0 {
						p.cut(p.d.Snapshot(), fmt.Sprintf("before %d %s %s", op.N, op.Call, op.Name))
					}
					return crashfs.Fault{}
				})
				p.create()
				life(p)
				p.cut(p.d, "at the end")
			})
		}
	}
	t.Cleanup(func() { t.Logf("%d outcomes", looked.Load()) })
}

// near is the number of calls after a failure at which a short run cuts the power.
const near = 25

// One call fails, and the same or another process continues in a new segment. Then the power
// is cut at any time. A failed fsync loses the data, although the page cache still shows it.
func TestPowerCutsAfterAFailure(t *testing.T) {
	t.Parallel()
	var looked atomic.Int64
	for name, life := range lives {
		for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
			for _, kill := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", mode, " ", kill), func(t *testing.T) {
					t.Parallel()
					for k := 1; ; k++ {
						if !*deep && k%23 != len(name)%23 {
							continue
						}
						p := &power{t: t, d: crashfs.New(mode), kill: kill, rng: rand.New(rand.NewPCG(7, uint64(k))), looked: &looked}
						p.create()
						failed, first, at, again := "", 0, 0, k%2 == 0
						p.d.SetHook(func(op crashfs.Op) crashfs.Fault {
							if first == 0 {
								first = op.N
							}
							switch {
							case op.N == 0:
							case failed != "" && again && kill && op.Call == "syncdir": // the next process' sync too
								again = false
								return crashfs.Fault{Err: syscall.EIO}
							case failed != "" && !*deep && op.N > at+near: // TestPowerCuts covers the rest of the life
							case failed != "":
								p.cut(p.d.Snapshot(), fmt.Sprintf("after a failed %s, before %d %s %s", failed, op.N, op.Call, op.Name))
							case op.N >= first+k:
								at, failed = op.N, fmt.Sprintf("%d %s %s", op.N, op.Call, op.Name)
								return crashfs.Fault{Err: syscall.EIO, Partial: op.Bytes / 2}
							}
							return crashfs.Fault{}
						})
						life(p)
						p.d.SetHook(nil)
						if failed == "" {
							return
						}
						p.cut(p.d, "after a failed "+failed+", at the end")
					}
				})
			}
		}
	}
	t.Cleanup(func() { t.Logf("%d outcomes", looked.Load()) })
}
