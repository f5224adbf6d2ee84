package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// Rules are the ignore rules at an entry: those in force, and those that were found in
// the tree and outside of it.
type Rules struct {
	InForce, Found *files.Rules
}

// The object of an entry's rules: for those in force and then for those that were found,
// their number, and of each file the length of its path, the path, and the hash of its
// content, which is an object too. Numbers are uvarints.
const (
	rulesMagic = "rules 1\n"
	maxRules   = 4 << 20   // bytes of the object
	maxIgnored = 256 << 10 // bytes of one ignore file, as package files has it
)

// ignored says whether a path was left out at the entry unless it had been captured.
func (r *Rules) ignored(path string, dir bool) bool {
	return r.InForce.Ignored(path, dir) || r.Found.Ignored(path, dir)
}

// A ruleFile is an ignore file by its content.
type ruleFile struct {
	path string
	hash blob.Hash
}

func encodeRules(lists [2][]ruleFile) []byte {
	b := []byte(rulesMagic)
	for _, list := range lists {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, f := range list {
			b = append(appendText(b, f.path), f.hash[:]...)
		}
	}
	return b
}

func decodeRules(data []byte) (lists [2][]ruleFile, err error) {
	if !bytes.HasPrefix(data, []byte(rulesMagic)) {
		if bytes.HasPrefix(data, []byte("rules ")) {
			return lists, fmt.Errorf("rules of another version: %w", envelope.ErrFutureVersion)
		}
		return lists, errors.New("they are no rules")
	}
	c := objectReader{data: data[len(rulesMagic):]}
	for n := range lists {
		for left := c.uvarint(); left > 0 && !c.bad; left-- {
			f := ruleFile{path: c.text(), hash: c.hash()}
			if k := len(lists[n]); k > 0 && !isOutside(lists[n][k-1].path) && lists[n][k-1].path >= f.path {
				c.bad = true
			}
			lists[n] = append(lists[n], f)
		}
	}
	if c.bad || len(c.data) > 0 {
		return [2][]ruleFile{}, errors.New("the rules are damaged")
	}
	return lists, nil
}

// isOutside says whether an ignore file is not in the tree. Those stand in front, the
// weakest first, and the others follow by path.
func isOutside(path string) bool { return strings.HasPrefix(path, "//") }

// Rules reads the rules of an entry.
func (s *Store) Rules(e *Entry) (*Rules, error) {
	if e.rules != nil {
		return e.rules, nil
	}
	s.chainMu.Lock()
	known := s.rules[e.Rules]
	s.chainMu.Unlock()
	if known != nil {
		return known, nil
	}
	lists, err := readRules(s.blobs, e.Rules)
	if err != nil {
		return nil, err
	}
	var both [2]*files.Rules
	for n, list := range lists {
		all := make([]files.IgnoreFile, len(list))
		for i, f := range list {
			data, err := readObject(s.blobs, f.hash, maxIgnored)
			if err != nil {
				return nil, err
			}
			all[i] = files.IgnoreFile{Path: f.path, Data: data}
		}
		both[n] = files.NewRules(all)
	}
	return s.hold(e.Rules, &Rules{InForce: both[0], Found: both[1]}), nil
}

// newestRules are those of the newest entry that has any, nil without one, and whether a
// task was at work between that one and the end.
func (s *Store) newestRules(c *chain) (r *Rules, task bool, err error) {
	var bad blob.Hash // the object that could not be read last
	for _, e := range slices.Backward(c.entries) {
		if e.Removed == "" && e.Rules != bad {
			if r, err = s.Rules(e); err == nil || !lost(err) {
				return r, task, err
			}
			bad = e.Rules
		}
		task = task || len(e.By) > 0 || e.Cut
	}
	return nil, task, nil
}

// hold keeps rules in memory.
func (s *Store) hold(h blob.Hash, r *Rules) *Rules {
	s.chainMu.Lock()
	defer s.chainMu.Unlock()
	if len(s.rules) >= 16 || s.rules == nil {
		s.rules = map[blob.Hash]*Rules{}
	}
	s.rules[h] = r
	return r
}

func readRules(blobs *blob.Store, h blob.Hash) (lists [2][]ruleFile, err error) {
	data, err := readObject(blobs, h, maxRules)
	if err != nil {
		return lists, err
	}
	if lists, err = decodeRules(data); err != nil {
		return lists, damaged(h.String(), err)
	}
	return lists, nil
}

// inForce are the rules that hold at a moment whose rules are found. They are of the
// chain, whoever's entry it is: was is nil before its first one. task says that a task was at work since: then nothing that changed
// holds. goal are the rules at the target of a rewind that came since, nil without one:
// what it brought back counts as it did there.
func inForce(was *Rules, found *files.Rules, task bool, goal *Rules) *files.Rules {
	if was == nil {
		return found
	}
	then, now, held := byPath(was.Found), byPath(found), byPath(was.InForce)
	next, changed := maps.Clone(held), false
	set := func(path string, from map[string][]byte) {
		data, ok := from[path]
		if old, had := next[path]; ok == had && bytes.Equal(old, data) {
			return
		}
		changed = true
		if delete(next, path); ok {
			next[path] = data
		}
	}
	either := maps.Clone(then)
	maps.Copy(either, now)
	for path := range either {
		switch {
		case equalAt(path, then, now):
		case goal != nil && equalAt(path, now, byPath(goal.Found)):
			set(path, byPath(goal.InForce))
		case !task:
			set(path, now)
		}
	}
	if !changed {
		return was.InForce
	}
	// Those from outside in the order in which they are found.
	var all []files.IgnoreFile
	for _, f := range slices.Concat(found.Files(), was.InForce.Files()) {
		if data, ok := next[f.Path]; ok {
			all = append(all, files.IgnoreFile{Path: f.Path, Data: data})
			delete(next, f.Path)
		}
	}
	for path, data := range next { // what only the target has
		all = append(all, files.IgnoreFile{Path: path, Data: data})
	}
	return files.NewRules(all)
}

// byPath are the contents of ignore files.
func byPath(r *files.Rules) map[string][]byte {
	all := map[string][]byte{}
	if r != nil {
		for _, f := range r.Files() {
			all[f.Path] = f.Data
		}
	}
	return all
}

// equalAt says whether two sets of ignore files have the same at a path.
func equalAt(path string, a, b map[string][]byte) bool {
	x, inA := a[path]
	y, inB := b[path]
	return inA == inB && bytes.Equal(x, y)
}

// sameRules says whether two sets are of the same files.
func sameRules(a, b *files.Rules) bool {
	return a == b || maps.EqualFunc(byPath(a), byPath(b), bytes.Equal)
}
