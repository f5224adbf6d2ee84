package bundle

import (
	"bytes"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/writer/envelope"
)

// A Header is the first entry of a bundle: what it is and has.
type Header struct {
	Lopen      string     `json:"lopen"` // the version of lopen that wrote it
	At         time.Time  `json:"at"`
	Project    Project    `json:"project"`
	Sessions   []Session  `json:"sessions"`
	Documents  []Document `json:"documents,omitempty"`
	Bytes      int64      `json:"bytes"` // of all files and objects together, at most
	NoMessages bool       `json:"noMessages,omitempty"`
	Redacted   bool       `json:"redacted,omitempty"`
}

// A Project is where the sessions come from.
type Project struct {
	Path   string `json:"path"`
	Head   string `json:"head,omitempty"`
	Branch string `json:"branch,omitempty"`
}

// A Session is one of those that a bundle has.
type Session struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Module      string `json:"module"`
	Incarnation string `json:"incarnation"`
	Status      string `json:"status"`
	Seq         uint64 `json:"seq"` // of the last record
	Done        int    `json:"done"`
	Total       int    `json:"total"`
}

// A Document is a file of the project that belongs to a session.
type Document struct {
	Path   string `json:"path"` // in the project, with slashes
	Kind   string `json:"kind"`
	Module string `json:"module,omitempty"`
	SHA256 string `json:"sha256"` // in hex
	Size   int64  `json:"size"`
}

const (
	headerName   = "lopen-bundle.json"
	manifestName = "manifest.jsonl"
	objectsDir   = "objects/"
	packSuffix   = ".pack"
)

// A header has at most maxCommas commas: so many elements are what a reader makes of it, whose
// text may be much shorter than they are in memory.
const maxCommas = 300_000

var headerFormat = envelope.Format{Key: "bundle", Version: 1, Max: 16 << 20, Seal: envelope.Checksum, File: true}

func encodeHeader(h Header) ([]byte, error) {
	text, err := headerFormat.Encode(h)
	if err == nil {
		err = checkHeader(text)
	}
	return text, err
}

func decodeHeader(text []byte) (h Header, err error) {
	if err := checkHeader(text); err != nil {
		return h, err
	}
	return h, headerFormat.Decode(text, &h)
}

func checkHeader(text []byte) error {
	if n := bytes.Count(text, []byte(",")); n > maxCommas {
		return fmt.Errorf("it names too many sessions and documents (%d commas)", n)
	}
	return nil
}

// manifestLine is what the manifest has of an entry. The name needs no escapes.
func manifestLine(name string, size int64, sum []byte) []byte {
	return fmt.Appendf(nil, `{"name":"%s","size":%d,"sha256":"%x"}`+"\n", name, size, sum)
}

// totals is the last line of the manifest.
type totals struct {
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"` // the contents of all entries
}

// A line of the manifest has at most maxLine bytes: a name of 255, a hash, a number.
const maxLine = 512

var totalsFormat = envelope.Format{Key: "manifest", Version: 1, Max: maxLine, Seal: envelope.Checksum}
