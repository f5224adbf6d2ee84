package carry

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// ofPlace are the members of a record that an import changes, and the seal over them.
var ofPlace = []string{"settings", "snapshot", "lineage", "worktree", "holder", "rewind", "crc"}

// covers reports whether a session's folder has what another one has up to a Mark: its messages
// and events, its records but for what an import changes, and output if there is any. What only
// one of the two still has of changes of the State is not compared, nor are snapshots.
func covers(here, other writer.FS, at session.Mark) (bool, error) {
	same, err := sameLog(here, other, at.Seq, false)
	for k, upto := range at.Inherits {
		if err != nil || !same {
			return false, err
		}
		same, err = sameInherited(here, other, folder.InheritedLog(k), upto)
	}
	if err != nil || !same {
		return false, err
	}
	missing, err := hasOutput(other)
	if err == nil && missing {
		missing, err = hasOutput(here)
		missing = !missing
	}
	return !missing, err
}

func hasOutput(dir writer.FS) (bool, error) {
	all, err := list(dir)
	return slices.ContainsFunc(all, func(f file) bool { return strings.HasPrefix(f.name, output.Dir+"/") }), err
}

func sameInherited(here, other writer.FS, log string, upto uint64) (bool, error) {
	a, err := writer.OpenDir(here, log)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer a.Close()
	b, err := writer.OpenDir(other, log)
	if err != nil {
		return false, err
	}
	defer b.Close()
	return sameLog(a, b, upto, true)
}

// sameLog compares two logs up to a record; of inherited ones the messages and events.
func sameLog(here, other writer.FS, upto uint64, inherited bool) (bool, error) {
	a, err := journal.Read(here, 0, true)
	if err != nil {
		return false, err
	}
	b, err := journal.Read(other, 0, true)
	if err != nil {
		return false, err
	}
	mine, theirs := differing(a, b, upto), differing(b, a, upto)
	begin := max(a.Begin(), b.Begin())
	if !inherited && slices.ContainsFunc(slices.Concat(mine, theirs), func(r journal.Ref) bool { return r.Entry && r.Seq >= begin }) {
		return false, nil // a message or an event, and these are carried as they are
	}
	is, err := substance(a, mine, begin, inherited)
	if err != nil {
		return false, err
	}
	be, err := substance(b, theirs, begin, inherited)
	return maps.Equal(is, be), err
}

// differing returns the records up to one that another log does not have, byte for byte.
func differing(log, other *journal.Log, upto uint64) (all []journal.Ref) {
	for _, r := range log.Records[:len(log.Records)-len(log.Above(upto))] {
		if same := other.Above(r.Seq - 1); len(same) == 0 || same[0].Position != r.Position {
			all = append(all, r)
		}
	}
	return all
}

// substance returns the hashes of records without what an import changes. Of those before
// begin it takes what stays when the changes of the State are dropped.
func substance(log *journal.Log, refs []journal.Ref, begin uint64, inherited bool) (map[uint64][sha256.Size]byte, error) {
	t, all := texts{without: ofPlace}, map[uint64][sha256.Size]byte{}
	err := log.Lines(refs, func(r *journal.Ref, line []byte) error {
		rec, err := wire.DecodeRecord(line)
		switch said := rec.Message != nil || rec.TranscriptEvent != nil; {
		case err != nil || said:
		case inherited:
			line = nil
		case r.Seq < begin:
			line, err = wire.ReduceRecord(line)
		default:
			line, err = t.object(line, recordShape)
		}
		if line != nil {
			all[r.Seq] = sha256.Sum256(line)
		}
		return err
	})
	return all, err
}
