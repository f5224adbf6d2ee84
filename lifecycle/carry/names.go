package carry

import (
	"encoding/hex"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/journal"
)

// The names of entries, in the order in which they come. An object has no name.
const (
	sessionsDir  = folder.Sessions // sessions/{id}/{file of the session's folder}
	chainsDir    = "checkpoints"   // checkpoints/{chain}.jsonl
	documentsDir = "documents"     // documents/{SHA-256 of the content}
	projectFile  = "project.jsonl" // a line with a projectLine for each of the project's files

	chainSuffix = ".jsonl"
)

// inheritedDir is the folder of a session's folder with the logs that it inherited.
const inheritedDir = "inherited"

// A kind is what an entry is by its name.
type kind int

const (
	noEntry kind = iota // no name of an entry
	ofSession
	ofChain
	aDocument
	ofProject
	ofKept
)

// chainEntry returns the name of a chain of checkpoints.
func chainEntry(chain string) string { return chainsDir + "/" + chain + chainSuffix }

// documentEntry returns the name of a document whose content has this SHA-256, in hex.
func documentEntry(sum string) string { return documentsDir + "/" + sum }

// parseEntry returns what an entry is. of is the session's ID, the chain's name or the
// document's SHA-256, or the path of a folder that is kept; file is the path in the session's folder.
func parseEntry(name string) (k kind, of, file string) {
	dir, rest, _ := strings.Cut(name, "/")
	switch dir {
	case projectFile:
		if rest == "" && name == projectFile {
			return ofProject, "", ""
		}
	case sessionsDir:
		of, file, _ = strings.Cut(rest, "/")
		if _, err := session.ParseID(of); err == nil && carried(file) {
			return ofSession, of, file
		}
	case chainsDir:
		of, ok := strings.CutSuffix(rest, chainSuffix)
		if ok && session.ValidateModule(of) == nil { // a chain's name has the same rule
			return ofChain, of, ""
		}
	case trashDir, corruptedDir:
		return parseKept(dir, rest)
	case documentsDir:
		if sum, err := hex.DecodeString(rest); err == nil && len(sum) == 32 && hex.EncodeToString(sum) == rest {
			return aDocument, rest, ""
		}
	}
	return noEntry, "", ""
}

// The files of a session's folder that are carried, beside the segments of its log.
var (
	topFiles = pattern(`^(segments|(state|metrics|meta|recovery)\.json|(messages|transcript)\.jsonl)$`)
	below    = map[string]func() *regexp.Regexp{
		history.Dir: pattern(`^[1-9][0-9]{0,18}-[1-9][0-9]{0,18}\.json(\.zst|\.gz)?$`),
		output.Dir:  pattern(`^[0-9]{6,9}(-[0-9]{1,4})?(\.json|\.log|\.raw|\.prompt\.md)(\.[0-9]{1,18})?(\.zst|\.gz)?$`),
	}
	inherited = pattern(`^inherited/[1-9][0-9]{0,3}$`)
)

// pattern compiles an expression once, when it is first used: most commands use none.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// carried reports whether a file of a session's folder is carried. Locks, requests, cursors,
// temporary and derived files are not.
func carried(file string) bool {
	i := strings.LastIndexByte(file, '/')
	if i < 0 {
		return topFiles().MatchString(file) || journal.IsSegment(file)
	}
	dir, name := file[:i], file[i+1:]
	if inherited().MatchString(dir) {
		return name == journal.ListFile || journal.IsSegment(name)
	}
	names := below[dir]
	return names != nil && names().MatchString(name)
}

// A projectLine is what the project's folder had at a path.
type projectLine struct {
	Path   string      `json:"path,omitempty"`
	Raw    []byte      `json:"raw,omitempty"` // instead of Path, if it is not UTF-8
	Size   int64       `json:"size"`
	Mode   fs.FileMode `json:"mode"`             // permission bits
	SHA256 string      `json:"sha256,omitempty"` // of the content; "" for a folder
	Target string      `json:"target,omitempty"` // of a symlink
}
