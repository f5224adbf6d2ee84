package repair

import (
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// history reads the snapshots and adds damaged ones to the report.
func (r *Report) history(dir writer.FS) {
	all, unread, err := history.List(dir)
	if err != nil {
		r.damaged(history.Dir, err)
	}
	for _, m := range all {
		if _, _, err := history.Read(dir, m.ID(), m.SHA256); err != nil {
			unread = append(unread, history.Unread{ID: m.ID(), Err: err})
		}
	}
	for _, u := range unread {
		r.Faults = append(r.Faults, Fault{File: u.ID.Name(), Seq: u.ID.Seq, Kind: "damaged", Problem: u.Err.Error()})
		r.worse(HistoryDamaged)
	}
}

// conversation reads the messages and the transcript, and adds lost ones to the report. The
// session stays usable without them.
func (r *Report) conversation(dir writer.FS, at session.Mark) {
	for i, what := range []string{"messages", "transcript"} {
		for _, err := range folder.ReadAppended(dir, at, i == 1) {
			if err != nil {
				r.damaged(what, err)
			}
		}
	}
}

// copies compares the readable copies with the log. A copy with other content is torn: the next
// publication quarantines it and makes it again.
func (r *Report) copies(dir writer.FS, at session.Mark) {
	commit.CompareCopies(dir, at, func(name string, why error) {
		r.fault(Fault{File: name, Kind: journal.Torn.String(), Problem: why.Error()})
	})
}

func (r *Report) damaged(name string, err error) {
	r.Faults = append(r.Faults, Fault{File: name, Kind: "damaged", Problem: err.Error()})
	r.worse(Flawed)
}
