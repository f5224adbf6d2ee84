package lifecycle_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

var (
	crashStates  atomic.Int64 // explored by this test run
	randomStates = flag.Int("random", 3, "random outcomes of a power cut at each point, beside the systematic ones")
	deep         = flag.Bool("deep", false, "look at every outcome where a short run draws a few")
)

// every is how far apart the calls are that a run lets fail. Runs that begin at different
// ones of them meet all. With -short, as under the race detector, they are eight times as far apart.
func every(n int) int {
	switch {
	case *deep:
		return 1
	case testing.Short():
		return 8 * n
	}
	return n
}

// drawn reports whether a run looks at the i-th of many alike: with -short at each fourth one.
func drawn(i int) bool { return *deep || !testing.Short() || i%4 == 0 }

// outcomes returns what a power cut can leave at the i-th point: with -short each fourth of
// them, at the next point others, and never none.
func outcomes(d *crashfs.Disk, i int) (some []crashfs.Variant) {
	all := d.Variants(nil, 0)
	for k, v := range all {
		if drawn(k - i%min(4, len(all))) {
			some = append(some, v)
		}
	}
	return some
}

// passed reports whether a run leaves the i-th of n points out, as -short does with two of three. The
// last one, where all is acknowledged, is none of them.
func passed(i, n int) bool { return !*deep && testing.Short() && i%3 != 0 && i < n-1 }

// workloads are short lives of a session. The power is cut before every single
// call that they make, in every variant.
var workloads = map[string]func(s *sim){
	"create": func(s *sim) {},
	"save": func(s *sim) {
		for range 3 {
			require.NoError(s.t, s.save(10))
			require.NoError(s.t, s.sync())
		}
	},
	"burst": func(s *sim) {
		for range 3 {
			for range 4 {
				require.NoError(s.t, s.save(700))
			}
			require.NoError(s.t, s.flush())
		}
	},
	"rotate": func(s *sim) {
		for range 6 {
			require.NoError(s.t, s.save(3000))
			require.NoError(s.t, s.sync())
		}
	},
	"snapshot": func(s *sim) {
		for _, bulk := range []int{10, 6000, 20, 7000, 7000} {
			require.NoError(s.t, s.save(bulk))
			require.NoError(s.t, s.sync())
		}
	},
	"complete": func(s *sim) {
		require.NoError(s.t, s.save(10))
		require.NoError(s.t, s.finish())
		require.NoError(s.t, s.flush())
	},
	"messages": func(s *sim) {
		s.talks = true
		for _, bulk := range []int{10, 6000, 20} {
			require.NoError(s.t, s.save(bulk))
			s.say(1)
			require.NoError(s.t, s.sync())
		}
	},
	"messages, close and go on": func(s *sim) {
		s.talks = true
		for range 2 {
			require.NoError(s.t, s.save(10))
			require.NoError(s.t, s.close())
			require.NoError(s.t, s.reopen())
		}
		require.NoError(s.t, s.save(10))
		require.NoError(s.t, s.sync())
	},
	"close and go on": func(s *sim) {
		for range 2 {
			require.NoError(s.t, s.save(10))
			require.NoError(s.t, s.save(10))
			require.NoError(s.t, s.close())
			require.NoError(s.t, s.reopen())
		}
		require.NoError(s.t, s.save(10))
		require.NoError(s.t, s.sync())
	},
}

func TestPowerCutAnywhere(t *testing.T) {
	t.Parallel()
	for name, work := range workloads {
		for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
			t.Run(fmt.Sprintf("%s/%s", name, mode), func(t *testing.T) {
				t.Parallel()
				s := newSim(t, mode)
				defer s.counted()
				s.capture.Store(true)
				s.watch(nil)
				s.init()
				require.NoError(t, s.create())
				work(s)
				require.NoError(t, s.close())
				s.take("the end")
				s.explore(1)
			})
		}
	}
}

// TestTakeover kills the process at every call, so that what it had not synced
// is in the cache, where the next process finds it and takes it for what is there.
// That one continues, and then the power is cut, at every call.
func TestTakeover(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			for kill := 1 + int(mode)%every(4); ; kill += every(4) {
				s := newSim(t, mode)
				s.init()
				require.NoError(t, s.create())
				s.talks = mode == crashfs.XFS
				n, dead := 0, false
				s.watch(serial(func(crashfs.Op) crashfs.Fault {
					if n++; n >= kill {
						dead = true
						return crashfs.Fault{Err: errors.New("killed")}
					}
					return crashfs.Fault{}
				}))
				for range 2 {
					_ = s.save(10)
					_ = s.flush()
				}
				s.kill()
				s.capture.Store(true)
				s.watch(nil)
				require.NoError(t, s.reopen(), "killed at call %d", kill)
				require.NoError(t, s.save(10))
				require.NoError(t, s.sync())
				s.take("the end")
				s.explore(1)
				s.counted()
				if !dead {
					return
				}
			}
		})
	}
}

// TestFaultAndPowerCut fails each call once, with each errno, pauses, resumes
// when the cause is gone, and cuts the power at every call from the fault on. The
// last process dies before a second one takes over, too: fsync failed, the process
// was restarted, it saved, then the power was cut. Without -deep these are four of the
// eight combinations, such that each two of file system, errno and restart meet.
func TestFaultAndPowerCut(t *testing.T) {
	t.Parallel()
	combinations := 0
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
			for _, restart := range []bool{false, true} {
				if !*deep && restart != ((mode == crashfs.Ext4) == (errno == syscall.EIO)) {
					continue
				}
				first := 1 + combinations%4*(every(16)/4) // the calls that each lets fail are others
				combinations++
				t.Run(fmt.Sprintf("%s/%s/restart=%v", mode, strings.ReplaceAll(errno.Error(), " ", "-"), restart), func(t *testing.T) {
					t.Parallel()
					for k := first; faultThenCut(t, mode, errno, restart, k); k += every(16) {
					}
				})
			}
		}
	}
}

// faultThenCut fails the k-th call of two saves; false says that there was none.
func faultThenCut(t *testing.T, mode crashfs.Mode, errno syscall.Errno, restart bool, k int) bool {
	s := newSim(t, mode)
	defer s.counted()
	s.init()
	require.NoError(t, s.create())
	s.talks = mode == crashfs.Ext4
	n, failed := 0, ""
	s.watch(serial(func(op crashfs.Op) crashfs.Fault {
		if n++; n != k {
			return crashfs.Fault{}
		}
		failed = op.Call + " " + op.Name
		s.capture.Store(true)
		return crashfs.Fault{Err: &os.PathError{Op: op.Call, Path: op.Name, Err: errno}, Partial: op.Bytes / 2}
	}))
	for range 2 {
		_ = s.save(700)
		_ = s.flush()
	}
	if failed == "" {
		s.disk.SetHook(nil)
		require.NoError(t, s.close())
		return false
	}
	if restart {
		s.kill()
		s.watch(nil)
		require.NoError(t, s.reopen(), "after %v at %s", errno, failed)
	} else {
		require.NoError(t, s.unpause(), "after %v at %s", errno, failed)
	}
	require.NoError(t, s.save(10))
	require.NoError(t, s.sync())
	require.NoError(t, s.close())
	s.take("the end")
	s.explore(1)
	return true
}

// TestPowerCutWhileAcceptingAnEdit edits a session outside and accepts it, and cuts
// the power at every call: it is edited still, and can be accepted again, or accepted.
func TestPowerCutWhileAcceptingAnEdit(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"state.json", "metrics.json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, crashfs.Ext4)
			accepted(t, b.save(10))
			require.NoError(t, b.close())
			file := ".lopen/sessions/" + b.id.String() + "/" + name
			data, err := writer.ReadFile(b.disk.FS(), file, 1<<20)
			require.NoError(t, err)
			edited := bytes.Replace(data, []byte(`"turnCount":2`), []byte(`"turnCount":77`), 1)
			edited = bytes.Replace(edited, []byte(`"outputTokens":1}`), []byte(`"outputTokens":8}`), 1)
			require.NotEqual(t, data, edited)
			require.NoError(t, writer.ReplaceFile(b.disk.FS(), file, edited, 0o600))
			want, _, err := b.store.Read(b.id)
			require.ErrorIs(t, err, lifecycle.ErrEdited)
			b.capture.Store(true)
			edit, err := b.store.AcceptEdit(b.id, false)
			require.NoError(t, err)
			require.Len(t, edit.Changes, 1)
			b.take("the end")
			still, done := 0, 0
			for i, p := range b.points {
				for _, v := range outcomes(p.disk, i) {
					crashStates.Add(1)
					what := fmt.Sprintf("cut before %q, %s", p.op, v.Name)
					store, err := lifecycle.OpenOn(p.disk.Crash(v).FS(), simOptions)
					require.NoError(t, err, what)
					st, _, err := store.Read(b.id)
					require.Equal(t, image(want), image(st), what)
					if errors.Is(err, lifecycle.ErrEdited) {
						still++
						require.Less(t, i, len(b.points)-1, what)
						_, err = store.AcceptEdit(b.id, false)
						require.NoError(t, err, what)
						st, _, err = store.Read(b.id)
					} else {
						done++
					}
					require.NoError(t, err, what)
					require.Equal(t, image(want), image(st), what)
					r, err := store.Verify(b.id)
					require.NoError(t, err, what)
					if r.Condition != repair.Intact && r.Condition != repair.Torn { // state.json has the sums of before until it is replaced as well
						require.Equal(t, repair.Flawed, r.Condition, "%s: %v", what, r.Faults)
						require.Equal(t, "totals-add-up", r.Rules[0].Rule, what)
						require.Equal(t, "metrics.json", name)
					}
					past, err := store.ReadAt(b.id, 3)
					require.NoError(t, err, what)
					require.Equal(t, 2, past.Header().TurnCount, "%s: the past stays as it was", what)
					require.EqualValues(t, 3, past.Totals().OutputTokens, what)
				}
			}
			require.NotZero(t, still)
			require.NotZero(t, done)
		})
	}
}

// TestPowerCutDuringQuarantine damages a session and opens it: it is in its place,
// or in corrupted/, whole.
func TestPowerCutDuringQuarantine(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	require.NoError(t, b.close())
	require.NoError(t, writer.ReplaceFile(b.disk.FS(), ".lopen/sessions/"+b.id.String()+"/journal-1-1.jsonl", []byte("{}"), 0o600))
	b.capture.Store(true)
	_, err := b.store.Open(b.id)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	b.take("the end")
	moved, stayed := 0, 0
	for i, p := range b.points {
		for _, v := range outcomes(p.disk, i) {
			crashStates.Add(1)
			root := p.disk.Crash(v).FS()
			in, err := root.ReadDir(".lopen/sessions/" + b.id.String())
			if err == nil {
				stayed++
				require.Less(t, i, len(b.points)-1, "the error says where it is: it must not come back: %s", v.Name)
			} else {
				moved++
				quarantined, err := root.ReadDir(".lopen/corrupted")
				require.NoError(t, err, v.Name)
				quarantined = quarantined[1:] // the .gitignore
				require.Len(t, quarantined, 2, "%s: the folder and its reason", v.Name)
				in, err = root.ReadDir(".lopen/corrupted/" + quarantined[0].Name())
				require.NoError(t, err)
			}
			names := ""
			for _, e := range in {
				names += " " + e.Name()
			}
			require.Contains(t, names, "journal-1-1.jsonl metrics.json segments state.json", v.Name)
		}
	}
	require.NotZero(t, moved)
	require.NotZero(t, stayed)
}

// TestPowerCutDuringRecreation removes a session that is held and continues: it is
// absent or whole, and once it is acknowledged it is there.
func TestPowerCutDuringRecreation(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	require.NoError(t, b.disk.FS().RemoveAll(".lopen/sessions"))
	require.NoError(t, b.disk.FS().SyncDir(".lopen"))
	accepted(t, b.save(10))
	require.Error(t, b.sync())
	b.capture.Store(true)
	require.NoError(t, b.unpause())
	b.take("the end")
	absent := 0
	for i, p := range b.points {
		for _, v := range outcomes(p.disk, i) {
			crashStates.Add(1)
			store, err := lifecycle.OpenOn(p.disk.Crash(v).FS(), simOptions)
			require.NoError(t, err)
			st, _, err := store.Read(b.id)
			if errors.Is(err, lifecycle.ErrNotFound) && p.acked.state < 2 {
				absent++
				continue
			}
			require.NoError(t, err, v.Name)
			n := st.Header().TurnCount
			require.Equal(t, image(b.states[n]), image(st))
			if p.acked.state == 2 {
				require.Equal(t, 2, n)
			}
		}
	}
	require.NotZero(t, absent)
}
