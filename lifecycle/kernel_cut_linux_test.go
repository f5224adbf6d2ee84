package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/lifecycle"
)

// The tests of the files kernel_*_linux_test.go are what the simulated disk says,
// asked of the kernel: real file systems, real processes.

const (
	// goingDown is EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN, _IOR('X', 125, __u32).
	goingDown = 0x8004587d
	// noLogFlush has the file system stop as it is: what is in memory is lost.
	noLogFlush = 2
)

// image is a file system in a file, mounted by way of a loop device.
type imageFS struct {
	file, dir string
	options   string
}

func newImage(t *testing.T, kind string, options ...string) *imageFS {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a file system takes root")
	}
	for _, tool := range []string{"mount", "umount", "mkfs." + kind} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	size, args := int64(64<<20), []string{"-q", "-F"}
	if kind == "xfs" {
		size, args = 320<<20, []string{"-q", "-f"}
	}
	size += int64(*cuts) << 18 // a journal keeps all its records
	m := &imageFS{file: filepath.Join(t.TempDir(), kind+".img"), dir: t.TempDir(), options: strings.Join(append([]string{"loop"}, options...), ",")}
	require.NoError(t, os.WriteFile(m.file, nil, 0o600))
	require.NoError(t, os.Truncate(m.file, size))
	out, err := exec.Command("mkfs."+kind, append(args, m.file)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	if out, err := exec.Command("mount", "-o", m.options, m.file, m.dir).CombinedOutput(); err != nil {
		t.Skipf("%s cannot be mounted here: %v: %s", kind, err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", m.dir).CombinedOutput(); err != nil {
			_ = exec.Command("umount", "-l", m.dir).Run()
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return m
}

// again unmounts and mounts, which plays the file system's own journal.
func (m *imageFS) again(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{{"umount", m.dir}, {"mount", "-o", m.options, m.file, m.dir}} {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, "%s: %s", args, out)
	}
}

// cut cuts the power as far as this file system is concerned: nothing that is not
// on the device yet will ever get there.
func (m *imageFS) cut(t *testing.T) {
	t.Helper()
	f, err := os.Open(m.dir)
	require.NoError(t, err)
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), goingDown, noLogFlush); err != nil {
		t.Skipf("the kernel does not shut this file system down: %v", err)
	}
}

// TestPowerCut cuts the power at random moments while a process saves as fast as
// it can, as often as -cuts says, on one file system and in one session. Whatever
// was acknowledged is there when the file system is mounted again.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := newImage(t, kind)
			lost := 0
			h := newHammer(t, m.dir, uint64(len(kind)))
			for range *cuts {
				h.strike(t, 150*time.Millisecond, func(s *saver) {
					// The control of this test: what nobody synced must be lost.
					control := filepath.Join(m.dir, fmt.Sprintf("unsynced-%d", h.strikes))
					require.NoError(t, os.WriteFile(control, []byte(strings.Repeat("unsynced", 1<<10)), 0o600))
					m.cut(t)
					s.end(t)
					m.again(t)
					if data, _ := os.ReadFile(control); len(data) == 0 {
						lost++
					}
				})
			}
			t.Logf("%d cuts, %d acknowledged saves, %d records there; %d of %d unsynced files lost", h.strikes, h.acked, h.records, lost, h.strikes)
			require.NotZero(t, lost, "or the power was never cut")
		})
	}
}

// TestKill9 kills a process that saves as fast as it can at random moments, as
// often as -kills says.
func TestKill9(t *testing.T) {
	t.Parallel()
	h := newHammer(t, t.TempDir(), 9)
	for range *kills {
		h.strike(t, 40*time.Millisecond, func(s *saver) {
			require.NoError(t, s.cmd.Process.Kill())
			s.end(t)
		})
	}
	t.Logf("%d kills, %d acknowledged saves, %d records there", h.strikes, h.acked, h.records)
}

// hammer strikes one session again and again while it is saved.
type hammer struct {
	project string
	rnd     *rand.Rand
	turn    int // of the newest State that is known to be durable
	strikes int
	acked   int    // by the processes that were struck
	records uint64 // of the journal
}

func newHammer(t *testing.T, project string, stream uint64) *hammer {
	t.Helper()
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("go test ./lifecycle -run '%s' -cuts %d -kills %d -seed %d", t.Name(), *cuts, *kills, n)
	store, _, err := lifecycle.Init(project, lifecycle.Options{})
	require.NoError(t, err)
	made(t, store, "auth")
	require.NoError(t, store.Close(t.Context()))
	return &hammer{project: project, rnd: rand.New(rand.NewPCG(n, stream))}
}

// strike starts a process that saves and lets blow end it at a random moment: of
// its saving, or, once in four times, of its life, so that opening is hit as well.
func (h *hammer) strike(t *testing.T, within time.Duration, blow func(*saver)) {
	t.Helper()
	s := startSaver(t, h.project)
	if h.rnd.IntN(4) > 0 {
		s.begun(t)
	}
	select {
	case <-time.After(time.Duration(h.rnd.Int64N(int64(within)))):
	case <-s.ended:
		s.end(t)
		require.Fail(t, "the process ended by itself", "%s", s.stderr.String())
	}
	h.strikes++
	blow(s)
	h.acked += s.count
	h.turn = max(h.turn, s.last)
	h.check(t)
}

// check looks at what is there as anybody would: verify, log, read, open, and save
// once more.
func (h *hammer) check(t *testing.T) {
	t.Helper()
	store, err := lifecycle.Open(h.project, lifecycle.Options{})
	require.NoError(t, err)
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	require.NoError(t, infos[0].Err)
	id := infos[0].ID
	report, err := store.Verify(id)
	require.NoError(t, err)
	require.Contains(t, []lifecycle.Condition{lifecycle.Intact, lifecycle.Torn}, report.Condition, "%+v", report)
	st, seq, err := store.Read(id)
	require.NoError(t, err)
	got := st.Header().TurnCount
	require.GreaterOrEqual(t, got, h.turn, "an acknowledged save is lost, strike %d", h.strikes)
	require.LessOrEqual(t, got, h.turn+1, "only one save is on its way at a time")
	requireWhole(t, st)
	requireGapless(t, store, id, seq)

	sess, err := store.Open(id)
	require.NoError(t, err)
	require.Equal(t, got, sess.State().Header().TurnCount)
	requireWhole(t, sess.State())
	h.turn = got + 1
	require.NoError(t, saveTurn(sess, h.turn))
	require.NoError(t, sess.Sync(t.Context()))
	require.NoError(t, store.Close(t.Context()))

	store, err = lifecycle.Open(h.project, lifecycle.Options{})
	require.NoError(t, err)
	st, h.records, err = store.Read(id)
	require.NoError(t, err)
	require.Equal(t, h.turn, st.Header().TurnCount)
	requireGapless(t, store, id, h.records)
	report, err = store.Verify(id)
	require.NoError(t, err)
	require.Equal(t, lifecycle.Intact, report.Condition, "%+v", report)
	require.NoError(t, store.Close(t.Context()))
}
