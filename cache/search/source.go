package search

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A Document is one text of a source, such as a message of a session.
type Document struct {
	// Number is its place in the source. Numbers ascend; several documents may have one.
	Number uint64
	Time   time.Time
	Kind   string // what it is: message, attempt, plan
	Role   string
	Tool   string   // the name of a tool, or several with a space between
	Files  []string // the paths that it is about; none has a NUL byte
	Text   string
}

// between stands between the paths of a document in the index. A name may have a line's end.
const between = "\x00"

// A Source has documents that are added and never changed. A file that may be written anew
// has its fingerprint in Version.
type Source struct {
	// Key names the source among all sources.
	Key string
	// Version is of its content: with another one all of its documents are read again.
	Version string
	// Mark is how far it reaches, as far as that is known without reading: a source that has
	// not grown since it was read is not read. Grows says that it is not known.
	Mark  uint64
	Grows bool
	// Sign is another one whenever Mark is reached in another way, as far as that is known without
	// reading: a source with the same mark and another sign is looked at.
	Sign string
	// Order puts the newest source first.
	Order time.Time
	// Read calls fn with the documents above a mark, and returns how far it got. tail is what it
	// returned for the mark: when the source is no longer as it was read then, it returns
	// ErrChanged before it calls fn. What fn returns ends it.
	Read func(above uint64, tail string, fn func(*Document) error) (mark uint64, newTail string, err error)
}

// byAge is the order of sources: the newest first.
func byAge(a, b *Source) int {
	return cmp.Or(b.Order.Compare(a.Order), strings.Compare(b.Key, a.Key))
}

// sorted are the sources that a filter leaves, the newest first.
func sorted(all []Source, keep func(*Source) bool) []*Source {
	kept := make([]*Source, 0, len(all))
	for i := range all {
		if keep == nil || keep(&all[i]) {
			kept = append(kept, &all[i])
		}
	}
	slices.SortFunc(kept, byAge)
	return kept
}

// MaxPiece is how much of a text is one entry, in bytes. A longer text is several, and all words of a query have to be in
// one of them.
const MaxPiece = 16 << 10

// pieces calls fn with the parts of a text, none longer than MaxPiece, which are cut where
// a line or a word ends.
func pieces(text string, fn func(n int, part string) error) error {
	for n := 0; ; n++ {
		if len(text) <= MaxPiece {
			return fn(n, text)
		}
		at := strings.LastIndexByte(text[:MaxPiece], '\n')
		if at < MaxPiece/2 {
			at = strings.LastIndexByte(text[:MaxPiece], ' ')
		}
		if at < MaxPiece/2 {
			for at = MaxPiece; text[at]&0xc0 == 0x80 && at > MaxPiece-4; at-- { // not within a character
				continue
			}
		}
		if err := fn(n, text[:at]); err != nil {
			return err
		}
		text = text[at:]
	}
}
