package agents

import (
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Position says how far a history was read. The zero value is its beginning. It is JSON.
type Position struct {
	// Begun is set while a pass is not at its end.
	Begun bool           `json:"begun,omitempty"`
	Files []FilePosition `json:"files,omitempty"` // in the order of the pass
}

// A FilePosition says how far a file was read, and what the records behind it depend on.
type FilePosition struct {
	Name   string `json:"name"`             // below the folder of the history
	Offset int64  `json:"offset"`           // of the first line that was not taken
	Lines  int    `json:"lines,omitempty"`  // before Offset
	Until  int64  `json:"until,omitempty"`  // where the pass ends in this file
	Packed int64  `json:"packed,omitempty"` // size of a compressed file, or one in UTF-16, that was read to its end
	// Print is of the bytes at the beginning of the file and before Offset.
	Print string `json:"print,omitempty"`
	// Again is set once a file of the history was rewritten. Its items may be known, in this pass and
	// in all that follow.
	Again bool `json:"again,omitempty"`

	// End is the last record of the pass in a database, whose Offset and Until are the times of Last
	// and End.
	End string `json:"end,omitempty"`

	Last  string         `json:"last,omitempty"`  // uuid of the last record that has one
	Time  time.Time      `json:"time,omitzero"`   // of the last message
	Asked []requestUsage `json:"asked,omitempty"` // of the last requests
	Aside []sideline     `json:"aside,omitempty"` // the last lines of subagents in the session's own file
	Total *session.Usage `json:"total,omitempty"` // cumulative
	// Forked says that Total began with what another session had used.
	Forked bool   `json:"forked,omitempty"`
	ID     string `json:"id,omitempty"` // of the session, where a fork says it
	// Copied says that what follows was copied from that other session, or from the session of a subagent of Claude Code,
	// whose file may begin so.
	Copied bool     `json:"copied,omitempty"`
	Turns  []string `json:"turns,omitempty"` // what the last prompts followed
	// Prompts are those that a rollout has told of once, as an item or as an event: see told.
	Prompts []string `json:"prompts,omitempty"`
}

// requestUsage is what a request has used, as far as its lines have said.
type requestUsage struct {
	ID string `json:"id"`
	session.Usage
}

// A sideline is a line of a subagent in its session's file.
type sideline struct {
	UUID   string `json:"uuid"`
	Thread string `json:"thread"`
}

const (
	// maxAsked bounds the requests that are remembered. The lines of one follow each other, but for
	// the answers of its tools.
	maxAsked = 4
	// maxAside bounds the lines of subagents that are remembered, and the requests where there are any: those
	// of several subagents stand among each other.
	maxAside = 64
)

// sidechain returns the thread of a line of a subagent: that of the line which it follows, or its own.
func (p *FilePosition) sidechain(uuid, parent string) string {
	thread := uuid
	if i := slices.IndexFunc(p.Aside, func(l sideline) bool { return l.UUID == parent }); i >= 0 {
		thread = p.Aside[i].Thread
	}
	p.Aside = append(p.Aside, sideline{uuid, thread})
	p.Aside = p.Aside[max(len(p.Aside)-maxAside, 0):]
	return thread
}

// settle drops what no later pass needs: a subagent's file most likely grows no more, and a session may have
// thousands of them.
func (p *FilePosition) settle(subagent bool) {
	p.Until = 0
	if subagent {
		p.Last, p.Time, p.Lines, p.Asked = "", time.Time{}, 0, p.Asked[max(len(p.Asked)-1, 0):]
	}
}

// clone returns a copy that shares nothing that a Reader changes.
func (p *Position) clone() Position {
	c := Position{Begun: p.Begun, Files: slices.Clone(p.Files)}
	for i := range c.Files {
		f := &c.Files[i]
		f.Asked, f.Turns, f.Aside, f.Prompts = slices.Clone(f.Asked), slices.Clone(f.Turns), slices.Clone(f.Aside), slices.Clone(f.Prompts)
		if f.Total != nil {
			total := *f.Total
			f.Total = &total
		}
	}
	return c
}

// anew makes a pass read all files from their beginnings if one of them was rewritten, now or
// before, and there is something to read: what a file had before it was rewritten may come back.
func (p *Position) anew() {
	again := func(f FilePosition) bool { return f.Again }
	more := func(f FilePosition) bool { return f.Offset < f.Until }
	if !slices.ContainsFunc(p.Files, again) || !slices.ContainsFunc(p.Files, more) {
		return
	}
	for i, f := range p.Files {
		p.Files[i] = FilePosition{Name: f.Name, Until: f.Until, End: f.End, Again: true}
	}
}

// Redact hides credentials in what the Position has of records. Where there are any, it may take a line for one
// that follows another one.
func (p *Position) Redact(hide func(string) string) {
	for i := range p.Files {
		f := &p.Files[i]
		f.Last, f.ID = hide(f.Last), hide(f.ID)
		for n := range f.Asked {
			f.Asked[n].ID = hide(f.Asked[n].ID)
		}
		for n := range f.Aside {
			f.Aside[n] = sideline{hide(f.Aside[n].UUID), hide(f.Aside[n].Thread)}
		}
		for n := range f.Turns {
			f.Turns[n] = hide(f.Turns[n])
		}
	}
}

func (p *Position) file(name string) *FilePosition {
	i := slices.IndexFunc(p.Files, func(f FilePosition) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Files[i]
}
