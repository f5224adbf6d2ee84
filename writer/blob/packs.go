package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// known returns the packs that the last look found, the newest first. It looks once if there
// was no look yet.
func (s *Store) known() ([]*pack, error) {
	packs, looked := s.listed()
	if looked {
		return packs, nil
	}
	_, err := s.look()
	packs, _ = s.listed()
	return packs, err
}

// listed returns the packs that the last look found, and whether there was one.
func (s *Store) listed() (packs []*pack, looked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.packs, s.looked
}

// look lists the packs and reports whether they have changed since the last look.
func (s *Store) look() (changed bool, err error) {
	entries, err := s.readDir("look for packs", packsFolder.name())
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := map[string]*pack{}
	for _, p := range s.packs {
		old[p.name] = p
	}
	var packs []*pack
	for _, e := range entries {
		if !isPackName(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		p := old[e.Name()]
		if p == nil {
			p = &pack{name: e.Name()}
		}
		packs = append(packs, p)
	}
	slices.SortFunc(packs, func(a, b *pack) int { return strings.Compare(b.name, a.name) })
	changed = !slices.Equal(packs, s.packs)
	s.packs, s.looked = packs, true
	return changed, nil
}

// add adds a durable pack that this Store made to the known ones.
func (s *Store) add(p *pack) {
	p.durable.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs = append([]*pack{p}, s.packs...)
}

// fromPack returns the content of h from the first known pack that has it intact and for
// which pass returns true, and that pack. The error is errNext if there is none.
func (s *Store) fromPack(op string, h Hash, pass func(*pack) bool) (data []byte, from *pack, err error) {
	err = s.eachPack(op, h, func(p *pack, r *record) error {
		if pass != nil && !pass(p) {
			return errNext
		}
		f, size, err := s.openPack(op, p)
		if err != nil {
			return err
		}
		defer f.Close()
		if size != p.bytes {
			return damaged(fmt.Errorf("it has %d bytes, and had %d", size, p.bytes))
		}
		data, err = s.readObject(f, r)
		from = p
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return data, from, nil
}

// errNext is what fn of eachPack returns to continue without an error.
var errNext = errors.New("the next one")

// eachPack calls fn with each known pack that has h, until fn returns nil. If fn never does,
// eachPack returns the first error of fn or of an index, because that pack may have h, or
// errNext if there was no such error.
func (s *Store) eachPack(op string, h Hash, fn func(*pack, *record) error) error {
	packs, err := s.known()
	if err != nil {
		return s.failedAt(op, packsFolder.name(), h, writer.NotCommitted, err)
	}
	first := errNext
	for _, p := range packs {
		x, err := s.index(op, p)
		if err == nil {
			r := x.find(h)
			if r == nil {
				continue
			}
			if err = fn(p, r); err == nil {
				return nil
			}
		}
		if errors.Is(first, errNext) && !errors.Is(err, errNext) {
			first = s.failedAt(op, p.path(), h, writer.NotCommitted, err)
		}
	}
	return first
}

// attempts bounds how often find looks at packs that come and go.
const attempts = 4

// find looks for h in the known packs, then as a file of its own, then in packs that are new
// since the last look. A pack that a sweep rewrites is durable under its new name before the
// old one is removed, so a reader that finds the old one gone finds the new one.
func (s *Store) find(op string, h Hash, inPack func() error, loose func() error) error {
	for n := 0; ; n++ {
		perr := inPack()
		if perr == nil {
			return nil
		}
		err := loose()
		if err == nil {
			return nil
		}
		missing := errors.Is(err, fs.ErrNotExist)
		if err = s.failed(op, h, writer.NotCommitted, err); !missing {
			return err
		}
		if !errors.Is(perr, errNext) {
			err = perr
		}
		changed, lerr := s.look()
		if lerr != nil {
			return s.failedAt(op, packsFolder.name(), h, writer.NotCommitted, lerr)
		}
		if !changed || n == attempts {
			return err
		}
	}
}
