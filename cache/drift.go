package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A Drift says what became of a piece of a file since it was given.
type Drift string

// What may have become of it.
const (
	Same    Drift = ""
	Changed Drift = "changed"
	Gone    Drift = "gone" // no section has this header any more, or several have
)

// A Comparer compares what a file had once with the file as it is now. What it
// compares with is derived once, however often it is asked for: a session or a
// document from elsewhere may name a long section in each of its entries. Only one
// goroutine at a time may use it.
type Comparer struct {
	o        *Outline
	list     string            // the outline of the file, when overview has been set
	overview map[string]*piece // by header, what is given without being a section
	sections map[string]*piece // by header as it was asked for, nil for what is gone
	sums     map[piece]string
}

// A piece is a part of the file, or of the list of its sections.
type piece struct {
	listed     bool
	start, end int
}

// NewComparer compares with a file as o has it.
func NewComparer(o *Outline) *Comparer {
	return &Comparer{o: o, sections: map[string]*piece{}, sums: map[piece]string{}}
}

// Given compares a piece that ForTask gave, by the header, checksum and length that
// it had then. A piece that was cut is compared as far as it was given.
func (c *Comparer) Given(header, sum string, length int) Drift {
	var p *piece
	if header == HeaderPreamble || header == HeaderOutline {
		p = c.counterpart(header)
	} else {
		p = c.section(header)
	}
	if p != nil && p.end-p.start > MaxGiven { // as it was then, perhaps: less was given than there is
		p = &piece{p.listed, p.start, p.start + min(max(length, 0), MaxGiven)}
	}
	return c.compare(p, sum)
}

// Section compares all of a section, by a header as for Find and the checksum, in
// hex, that it had then.
func (c *Comparer) Section(header, sum string) Drift { return c.compare(c.section(header), sum) }

func (c *Comparer) counterpart(header string) *piece {
	if c.overview == nil {
		c.overview = map[string]*piece{}
		if text := c.o.Preamble(); strings.TrimSpace(text) != "" {
			c.overview[HeaderPreamble] = &piece{end: len(text)}
		}
		if c.list = c.o.list(); c.list != "" {
			c.overview[HeaderOutline] = &piece{listed: true, end: len(c.list)}
		}
	}
	return c.overview[header]
}

func (c *Comparer) section(header string) *piece {
	p, ok := c.sections[header]
	if !ok {
		if found := c.o.matches(header); len(found) == 1 {
			s := c.o.sections[found[0]]
			p = &piece{start: s.Start, end: s.End}
		}
		c.sections[header] = p
	}
	return p
}

func (c *Comparer) compare(p *piece, sum string) Drift {
	if p == nil {
		return Gone
	}
	have, ok := c.sums[*p]
	if !ok {
		text := c.o.src
		if p.listed {
			text = c.list
		}
		raw := sha256.Sum256([]byte(text[p.start:p.end]))
		have = hex.EncodeToString(raw[:])
		c.sums[*p] = have
	}
	if have != sum {
		return Changed
	}
	return Same
}
