package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// A Drift says what became of a piece of a file since it was given.
type Drift string

// What may have become of it.
const (
	Same    Drift = ""
	Changed Drift = "changed"
	Gone    Drift = "gone" // no section has this header any more, or several have
)

// DriftOf compares a piece that ForTask gave once, by the header, checksum and
// length that it had then, with the file as it is now. A piece that was cut is
// compared as far as it was given.
func DriftOf(o *Outline, header, sum string, length int) Drift {
	now, ok := o.piece(header)
	if !ok {
		return Gone
	}
	if len(now) > MaxGiven { // as it was then, perhaps: less was given than there is
		now = now[:min(len(now), max(length, 0))]
	}
	have := sha256.Sum256([]byte(now))
	if hex.EncodeToString(have[:]) != sum {
		return Changed
	}
	return Same
}

// piece is the content that a Given of this header has when nothing is cut.
func (o *Outline) piece(header string) (string, bool) {
	g := giver{room: len(o.src) + 1<<20, seen: map[string][]Section{}}
	if header == HeaderPreamble || header == HeaderOutline {
		g.overview("", o)
		i := slices.IndexFunc(g.given, func(x Given) bool { return x.Header == header })
		if i < 0 {
			return "", false
		}
		return string(g.given[i].Content), true
	}
	s, err := o.Find(header)
	if err != nil {
		return "", false
	}
	return o.src[s.Start:s.End], true
}
