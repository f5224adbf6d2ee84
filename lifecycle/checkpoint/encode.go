package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/session/strictjson"
	"github.com/lopen-dev/lopen/writer"
)

const (
	schemaVersion = 1
	// MaxManifest bounds what is read of one manifest, in bytes.
	MaxManifest = files.MaxEncoded
	// maxHeader bounds what stands before the files, in bytes.
	maxHeader = 64 << 10
)

// The joints of a manifest. A quote within a string is escaped and the header has
// no nested member of these names, so that the first of them is the one meant.
const (
	filesKey = `,"files":`
	sumKey   = `,"sha256":"`
	tail     = "\"}\n"
)

// Encode is the content of manifest.json: the version, the header, the snapshot as
// package files writes it, and last the SHA-256 of all bytes before its own key.
func (m *Manifest) Encode() ([]byte, error) {
	header := struct {
		SchemaVersion int `json:"schemaVersion"`
		Header
	}{schemaVersion, m.Header}
	header.At = m.At.UTC()
	if header.Tasks.Active == nil {
		header.Tasks.Active = []string{}
	}
	head, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("encode checkpoint %s: %w", m.ID, err)
	}
	snapshot := m.Files.Encode()
	out := make([]byte, 0, len(head)+len(snapshot)+len(filesKey)+len(sumKey)+2*sha256.Size+len(tail))
	out = append(out, head[:len(head)-1]...)
	out = append(out, filesKey...)
	out = append(out, snapshot...)
	sum := sha256.Sum256(out)
	out = append(out, sumKey...)
	out = hex.AppendEncode(out, sum[:])
	return append(out, tail...), nil
}

// Decode reads what Encode wrote. The error is writer.ErrFutureVersion for one of
// a newer lopen; anything else says that it is damaged.
func Decode(data []byte) (*Manifest, error) {
	if err := version(data); err != nil {
		return nil, err
	}
	end := len(data) - len(sumKey) - 2*sha256.Size - len(tail)
	if end < 0 || !bytes.HasPrefix(data[end:], []byte(sumKey)) || !bytes.HasSuffix(data, []byte(tail)) {
		return nil, errors.New("it has no checksum at its end")
	}
	sum := sha256.Sum256(data[:end])
	if want := data[end+len(sumKey) : len(data)-len(tail)]; hex.EncodeToString(sum[:]) != string(want) {
		return nil, errors.New("the content has not the checksum that it names")
	}
	head, snapshot, ok := bytes.Cut(data[:end], []byte(filesKey))
	if !ok {
		return nil, errors.New("it has no files")
	}
	header, err := decodeHeader(head)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Header: header}
	if m.Files, err = files.Decode(snapshot); err != nil {
		return nil, err
	}
	return m, checkFiles(m)
}

// version refuses a newer one before anything else is asked of the content.
func version(data []byte) error {
	r := strictjson.NewPrefixReader(data[:min(len(data), 64)])
	first, v := true, uint64(0)
	r.Object(func(key string) {
		if first && key == "schemaVersion" {
			v = r.Uint()
		}
		first = false
		r.Fail("enough") // one member was wanted
	})
	if v > schemaVersion {
		return fmt.Errorf("schema version %d: %w", v, writer.ErrFutureVersion)
	}
	if v != schemaVersion {
		return errors.New("it does not begin with its schema version")
	}
	return nil
}

// decodeHeader reads what stands before the files. Members that it does not know
// are of a later version of the same schema, and skipped.
func decodeHeader(head []byte) (Header, error) {
	var h Header
	r := strictjson.NewReader(append(bytes.Clone(head), '}'))
	r.Object(func(key string) {
		switch key {
		case "id":
			id, err := ParseID(r.Text())
			if err != nil {
				r.Fail("%v", err)
			}
			h.ID = id
		case "seq":
			h.Seq = r.Uint()
		case "at":
			at, err := time.Parse(time.RFC3339Nano, r.Text())
			if err != nil {
				r.Fail("%v", err)
			}
			h.At = at.UTC()
		case "reason":
			if h.Reason = Reason(r.Text()); !h.Reason.valid() {
				r.Fail("no reason for a checkpoint: %.40q", h.Reason)
			}
		case "task":
			h.Task = r.Text()
		case "tasks":
			h.Tasks = decodeTasks(r)
		case "filesModified":
			h.FilesModified = int(r.Int())
		case "messages":
			h.Messages = int(r.Int())
		case "bytes":
			h.Bytes = r.Int()
		default:
			r.Raw()
		}
	})
	r.End()
	if err := r.Err(); err != nil {
		return Header{}, err
	}
	if h.ID == 0 || h.Reason == "" || h.Bytes < 0 || h.FilesModified < 0 || h.Messages < 0 || h.Tasks.Total < 0 || h.Tasks.Completed < 0 {
		return Header{}, errors.New("a member is missing, or below 0")
	}
	return h, nil
}

func decodeTasks(r *strictjson.Reader) Tasks {
	var t Tasks
	r.Object(func(key string) {
		switch key {
		case "total":
			t.Total = int(r.Int())
		case "completed":
			t.Completed = int(r.Int())
		case "active":
			r.Array(func() { t.Active = append(t.Active, r.Text()) })
		default:
			r.Raw()
		}
	})
	return t
}

// checkFiles refuses what package files lets through and a rewind must never write,
// wherever the manifest came from: git's and lopen's own folders, and what is in
// anything that is no folder.
func checkFiles(m *Manifest) error {
	var bytes int64
	parent := "."
	looked := map[string]bool{} // folders, with those above them
	for i := range m.Files.Files {
		f := &m.Files.Files[i]
		dir, parts, name := ".", f.Path, strings.LastIndexByte(f.Path, '/')+1
		if name > 0 {
			dir = f.Path[:name-1]
		}
		if dir == parent { // which was looked at with the file before
			parts = f.Path[name:]
		}
		for part := range strings.SplitSeq(parts, "/") {
			if strings.EqualFold(part, ".git") || strings.EqualFold(part, ".lopen") || part == ".." {
				return fmt.Errorf("a checkpoint has no path like %q", f.Path)
			}
		}
		if dir != parent {
			for up := dir; up != "." && !looked[up]; up = path.Dir(up) {
				looked[up] = true
				if above := m.Files.Find(up); above != nil && !above.Mode.IsDir() {
					return fmt.Errorf("%q is in what is no folder", f.Path)
				}
			}
			parent = dir
		}
		if f.Mode.IsRegular() {
			if bytes += f.Size; bytes < 0 {
				return fmt.Errorf("%q has an impossible size", f.Path)
			}
		}
	}
	if bytes != m.Bytes {
		return fmt.Errorf("the files have %d bytes, not %d", bytes, m.Bytes)
	}
	return nil
}
