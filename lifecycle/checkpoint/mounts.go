package checkpoint

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/mount"
)

// maxMounts bounds the mount points of an entry, and maxMountBytes their paths. What is mounted
// beyond these is not captured.
const (
	maxMounts     = 256
	maxMountBytes = 16 << 10
)

// mounting decides in a look what is captured where something was mounted or unmounted. The mount
// points of the newest entry are the project's. As the ignore rules do, they change only where no
// task was at work; what was mounted while one was is not captured until it is mounted anew.
type mounting struct {
	at    writer.FS       // the work tree
	was   map[string]bool // the mount points of the newest entry, but those of which another volume is there now
	first bool            // there is no entry before: all are the project's
	task  bool            // a task was active since
	tree  *Tree           // of the newest entry

	mu      sync.Mutex
	taken   map[string]bool   // Guarded by mu.
	bytes   int               // Guarded by mu: of taken.
	volumes map[string]string // Guarded by mu: at the mount points, found before what is on them.
}

// newMounting returns the mounting of a look. prev is the newest entry that was not removed, or nil.
func newMounting(prev *Entry, s *Store, task bool) *mounting {
	m := &mounting{at: s.tree, first: prev == nil, task: task, was: map[string]bool{}, taken: map[string]bool{},
		volumes: map[string]string{}}
	if prev != nil {
		m.tree = s.Tree(prev.Root)
		known := prev.volumes()
		for _, path := range prev.Mounts {
			now := mount.Volume(m.at, path)
			m.was[path] = mount.SameVolume(known[path], now)
			m.taken[path], m.volumes[path] = true, cmp.Or(now, known[path])
			m.bytes += len(path)
		}
	}
	return m
}

// volumes returns what is known of the volumes at the mount points of an entry.
func (e *Entry) volumes() map[string]string {
	known := map[string]string{}
	for i, volume := range e.Volumes {
		known[e.Mounts[i]] = volume
	}
	return known
}

// mark sets the mount points of an entry that a look makes.
func (m *mounting) mark(e *Entry, mounts []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Mounts, e.Volumes = mounts, make([]string, len(mounts))
	for i, path := range mounts {
		e.Volumes[i] = m.volumes[path]
	}
	if !slices.ContainsFunc(e.Volumes, func(volume string) bool { return volume != "" }) {
		e.Volumes = nil
	}
}

// takes is [files.Options.Mount].
func (m *mounting) takes(path string, mounted bool) bool {
	switch {
	case m.first:
	case m.task:
		return false
	case mounted:
		it, err := m.tree.find(path)
		if err != nil || it != nil && it.kind == kindUnknown && it.text == string(files.Mounted) {
			return false
		}
	}
	if !mounted {
		return true
	}
	volume := mount.Volume(m.at, path)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.volumes[path] = volume
	return m.fits(path)
}

// fits reports whether an entry can name a mount point. The caller holds mu.
func (m *mounting) fits(path string) bool {
	if m.taken[path] {
		return true
	}
	if !utf8.ValidString(path) || len(m.taken) >= maxMounts || m.bytes+len(path) > maxMountBytes {
		return false
	}
	m.taken[path] = true
	m.bytes += len(path)
	return true
}

// mountsOf returns the mount points that a rewind may cross, those of the target that are there
// now with the same volume, and those at which something was mounted or unmounted since. Of an imported
// target nothing is known of mounts here.
func mountsOf(target, now *Entry, apart bool) (crossed, since map[string]bool) {
	crossed, since = map[string]bool{}, map[string]bool{}
	was, is := target.volumes(), now.volumes()
	for _, path := range now.Mounts {
		if apart || slices.Contains(target.Mounts, path) && mount.SameVolume(was[path], is[path]) {
			crossed[path] = true
		} else {
			since[path] = true
		}
	}
	for _, path := range target.Mounts {
		if !apart && !crossed[path] {
			since[path] = true
		}
	}
	return crossed, since
}

// mounted returns the mount point at or above a path at which something was mounted or unmounted
// since the target, or "".
func (p *planner) mounted(path string) string {
	if len(p.since) == 0 {
		return ""
	}
	for i, r := range path {
		if r == '/' && p.since[path[:i]] {
			return path[:i]
		}
	}
	if p.since[path] {
		return path
	}
	return ""
}

// errMounted means that a path is on a mount that the plan does not know.
var errMounted = errors.New("something was mounted there")

// enter opens a folder in at, whose path is path.
func (c *descent) enter(at writer.FS, path string) (sub writer.FS, err error) {
	var mounted bool
	err = writer.Retry(func() (err error) {
		sub, mounted, err = mount.Enter(at, base(path))
		return err
	})
	if errors.Is(err, mount.ErrNotFolder) {
		err = errNotFolder
	}
	if err == nil && mounted && c.crosses != nil && !c.crossesTo(path, sub, ".") {
		_ = sub.Close()
		err = errMounted
	}
	return sub, err
}

// descent returns a descent in the work tree that crosses the mount points of a plan.
func (p *Plan) descent(tree writer.FS) descent {
	return descent{root: tree, crosses: p.mounts, volumes: p.volumes}
}

// crossesTo reports whether a mount point may be crossed that is called name in dir.
func (c *descent) crossesTo(path string, dir writer.FS, name string) bool {
	return c.crosses[path] && mount.SameVolume(c.volumes[path], dir.Volume(name))
}

// crossed returns errMounted if a path in an open folder is a mount point that the plan does not
// know. A folder that was opened in at is on the mount of at, whatever is mounted meanwhile.
func (c *descent) crossed(at writer.FS, path string) error {
	if c.crosses == nil {
		return nil
	}
	var is bool
	var err error
	if n := len(c.open); n > 0 && at == c.open[n-1] {
		var on uint64
		on, err = at.Mount(base(path))
		is = err == nil && on != c.on[n-1]
	} else {
		is, err = mount.Point(at, base(path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if is && !c.crossesTo(path, at, base(path)) {
		err = errMounted
	}
	return err
}

// mountedSince reports whether an error of a change comes from what was mounted after the plan was
// made. The kernel says EBUSY of a mount point and EXDEV of a path that leads across one.
func (a *applier) mountedSince(c *Change, err error) bool {
	if errors.Is(err, errMounted) {
		return true
	}
	if !Refused(err) {
		return false
	}
	a.descent.cut(0) // what is open is beneath what was mounted
	_, _, err = a.descent.stat(c.Path)
	return errors.Is(err, errMounted)
}

func (a *applier) retains(path string) bool {
	return slices.ContainsFunc(a.out.Retained, func(k Retained) bool { return k.Path == path })
}

// near reports whether one of some paths is above or beneath another one.
func near(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, path+"/") || strings.HasPrefix(path, p+"/") })
}
