package repair

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/journal"
)

// made returns the checkpoints that the damaged session made, if incarnation is not "" only
// those of that incarnation.
func (b *rebuilder) made(incarnation string) (made []*checkpoint.Entry) {
	if b.chain == nil {
		return nil
	}
	all, faults, err := b.chain.List()
	for _, err := range append(faults, err) {
		if err != nil {
			b.Unread = append(b.Unread, err.Error())
		}
	}
	for _, e := range all {
		if e.Session == b.ID.String() && (incarnation == "" || e.Incarnation == incarnation) {
			made = append(made, e)
		}
	}
	return made
}

// line returns the checkpoint from which the new session's line continues, and the number of
// checkpoints on that line. It is the newest checkpoint that the damaged session made, even if
// its State is lost, because a person without the tasks needs the files most. If the session
// made none, it is the checkpoint that the record names. Checkpoints that cannot be read are
// added to Unread.
func (b *rebuilder) line(at session.Mark) (last string, n int) {
	if made := b.made(at.Incarnation); len(made) > 0 {
		last = made[len(made)-1].ID.String()
	} else {
		last = at.Checkpoint
	}
	if last == "" || b.chain == nil {
		return "", 0
	}
	e, err := b.chain.Lookup(last)
	if err != nil {
		b.Unread = append(b.Unread, err.Error())
		return "", 0
	}
	line, err := b.chain.Line(e.Number)
	if err != nil {
		b.Unread = append(b.Unread, err.Error())
	}
	read := map[blob.Hash]struct{}{}
	for _, number := range slices.Sorted(maps.Keys(line)) {
		e, err := b.chain.At(number)
		if err != nil || e.Removed != "" {
			continue
		}
		if err := b.chain.Objects(e, checkpoint.Unseen(read)); err != nil {
			b.Unread = append(b.Unread, fmt.Sprintf("checkpoint %d: %v", number, err))
			clear(read) // so that others that share the damaged objects are found too
			continue
		}
		n++
	}
	return last, n
}

// endOf returns the record with the State of a checkpoint. For a checkpoint after a rewind this
// is the record of the rewind's end.
func (b *rebuilder) endOf(e *checkpoint.Entry) uint64 {
	seq := e.Seq
	if e.Reason == checkpoint.AfterRewind {
		_ = b.Log.Lines(b.Log.Above(seq), func(_ *journal.Ref, line []byte) error {
			if rec, err := wire.DecodeRecord(line); err == nil && rewind.EndsAt(rec, e) {
				seq = rec.Seq
			}
			return nil
		})
	}
	return seq
}

// checkpointSeq returns the record that a name means: the number of a snapshot, or the number
// or the prefix of the ID of a checkpoint that the session made.
func (b *rebuilder) checkpointSeq(cp string) (uint64, error) {
	number, nerr := strconv.ParseUint(cp, 10, 63)
	if nerr == nil && slices.ContainsFunc(b.Bases, func(each folder.Base) bool { return each.At.Seq == number }) {
		return number, nil
	}
	for _, e := range b.made("") {
		if e.Seq > 0 && (nerr == nil && e.Number == number || len(cp) >= 4 && strings.HasPrefix(e.ID.String(), cp)) {
			return b.endOf(e), nil
		}
	}
	var have []string
	for _, each := range b.Bases {
		have = append(have, strconv.FormatUint(each.At.Seq, 10))
	}
	return 0, b.nothing("it has no checkpoint %q that can be read; its snapshots: %s", cp, strings.Join(have, ", "))
}
