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

// Rules are the ignore rules of an entry: those in force, and those that were found in the tree
// and outside of it.
type Rules struct {
	InForce, Found *files.Rules
}

// The object of an entry's rules has two lists: the rules in force, then the rules that were
// found. A list is its length and, for each ignore file, the length of the path, the path, and
// the hash of the content, which is an object too. Numbers are uvarints.
const (
	rulesMagic = "rules 1\n"
	maxRules   = 4 << 20   // bytes of the object
	maxIgnored = 256 << 10 // bytes of one ignore file, as package files has it
)

// A ruleFile is an ignore file with the hash of its content.
type ruleFile struct {
	path string
	hash blob.Hash
}

// limit bounds the content, in bytes.
func (f ruleFile) limit() int64 {
	if f.path == files.TrackedPath {
		return files.MaxTracked
	}
	return maxIgnored
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

// isOutside reports whether an ignore file is outside of the tree. In a list these come first,
// the weakest first, and the others follow by path.
func isOutside(path string) bool { return strings.HasPrefix(path, "//") }

// Rules reads the rules of an entry.
func (s *Store) Rules(e *Entry) (*Rules, error) {
	if e == nil {
		return nil, absent("read rules", "entry")
	}
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
	contents := map[blob.Hash][]byte{} // most are in both lists
	for n, list := range lists {
		all := make([]files.IgnoreFile, len(list))
		for i, f := range list {
			data, ok := contents[f.hash]
			if !ok {
				if data, err = readObject(s.blobs, f.hash, f.limit()); err != nil {
					return nil, err
				}
				contents[f.hash] = data
			}
			all[i] = files.IgnoreFile{Path: f.path, Data: data}
		}
		both[n] = files.NewRules(all)
	}
	return s.hold(e.Rules, &Rules{InForce: both[0], Found: both[1]}), nil
}

// newestRules returns the rules of the newest entry whose rules can be read, or nil, and whether
// a task was active after that entry.
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

// hold caches rules.
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

// inForce returns the rules in force, given the rules that were found. was are the rules of the
// last entry of the chain, or nil for the first entry. task says that a task was active since;
// then changes of the found rules do not come into force. goal are the rules at the target of
// a rewind since then, or nil: a rule that the rewind brought back is in force if it was at
// the target.
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
		case path == files.TrackedPath, equalAt(path, then, now):
		case goal != nil && equalAt(path, now, byPath(goal.Found)):
			set(path, byPath(goal.InForce))
		case !task:
			set(path, now)
		}
	}
	names := trackedInForce(was, now[files.TrackedPath], task)
	if !changed {
		return withTracked(was.InForce, names)
	}
	// Rules from outside stay in the order in which they are found.
	var all []files.IgnoreFile
	for _, f := range slices.Concat(found.Files(), was.InForce.Files()) {
		if data, ok := next[f.Path]; ok {
			all = append(all, files.IgnoreFile{Path: f.Path, Data: data})
			delete(next, f.Path)
		}
	}
	for path, data := range next { // rules that only the target has
		all = append(all, files.IgnoreFile{Path: path, Data: data})
	}
	return withTracked(files.NewRules(all), names)
}

// byPath returns the contents of ignore files by their paths.
func byPath(r *files.Rules) map[string][]byte {
	all := map[string][]byte{}
	if r != nil {
		for _, f := range r.Files() {
			all[f.Path] = f.Data
		}
	}
	return all
}

// equalAt reports whether two sets of ignore files agree at a path.
func equalAt(path string, a, b map[string][]byte) bool {
	x, inA := a[path]
	y, inB := b[path]
	return inA == inB && bytes.Equal(x, y)
}

// sameRules reports whether two sets of rules have the same files.
func sameRules(a, b *files.Rules) bool {
	return a == b || maps.EqualFunc(byPath(a), byPath(b), bytes.Equal)
}
