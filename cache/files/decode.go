package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session/strictjson"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// MaxEncoded bounds what Decode takes, in bytes.
const MaxEncoded = 1 << 30

// maxPath bounds a path, in bytes: what [Take] finds within its depth.
const maxPath = maxDepth * 256

// Decode reads what Encode returns. Members that it does not know are ignored. The Snapshot
// shares the memory of data, which must not be changed afterwards. The
// error has class future-version for a newer schemaVersion, else class corrupt.
func Decode(data []byte) (*Snapshot, error) {
	s, err := decode(data)
	if err != nil {
		class := writer.ClassCorrupt
		if errors.Is(err, writer.ErrFutureVersion) {
			class = writer.ClassFutureVersion
		}
		return nil, &writer.Error{Op: "decode", Path: "snapshot", Class: class, Err: err}
	}
	return s, nil
}

func decode(data []byte) (*Snapshot, error) {
	if len(data) > MaxEncoded {
		return nil, fmt.Errorf("it has %d bytes, more than the %d that are read", len(data), MaxEncoded)
	}
	d := decoder{strictjson.NewSharing(data)}
	s := &Snapshot{}
	version, sealed := int64(0), false
	d.Object(func(key string) {
		if version == 0 && key != "schemaVersion" {
			d.Fail("schemaVersion is not the first member")
			return
		}
		if sealed {
			d.Fail("the checksum is not the last member")
			return
		}
		switch key {
		case "schemaVersion":
			if version = d.Int(); version < 1 {
				d.Fail("schemaVersion %d", version)
			} else if version > schemaVersion {
				d.Fail("")
			}
		case "at":
			s.At = d.time()
		case "paths":
			s.Paths = d.paths()
		case "skipped":
			s.Skipped = d.skips()
		case "files":
			s.Files = d.files()
		case "checksum":
			_ = d.Text()
			sealed = true
		default:
			d.Raw()
		}
	})
	d.End()
	switch {
	case version > schemaVersion:
		return nil, fmt.Errorf("schemaVersion %d: %w", version, writer.ErrFutureVersion)
	case d.Err() != nil:
		return nil, d.Err()
	case !sealed || s.At.IsZero():
		return nil, errors.New("a member is missing")
	}
	body := bytes.LastIndex(data, []byte(checksumKey))
	if want := fmt.Sprintf("%s%08x\"}\n", checksumKey, crc32.Checksum(data[:max(body, 0)], castagnoli)); body < 0 || string(data[body:]) != want {
		return nil, errors.New("the checksum is not that of the content")
	}
	return s, nil
}

type decoder struct{ *strictjson.Reader }

func (d decoder) time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, d.Text())
	if err != nil || t.Location() != time.UTC {
		d.Fail("want a time in UTC")
	}
	return t
}

// bytes reads a member that holds what is not UTF-8.
func (d decoder) bytes() string {
	b, err := base64.StdEncoding.Strict().DecodeString(d.Text())
	if err != nil {
		d.Fail("want base64")
	}
	if plain, _ := text(string(b)); plain != "" || len(b) == 0 {
		d.Fail("base64 of what could be written plainly")
	}
	return string(b)
}

// checkPath refuses what is no clean path below the root, and what does not come
// after the one before.
func (d decoder) checkPath(p, before string, first bool) {
	switch {
	case d.Err() != nil:
	case len(p) > maxPath || strings.Count(p, "/") > maxDepth+1:
		d.Fail("a path of %d bytes, %d levels deep: more than %d or %d", len(p), strings.Count(p, "/"), maxPath, maxDepth+1)
	case p == "" || p != path.Clean(p) || path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") || strings.ContainsRune(p, 0):
		d.Fail("%q is no path inside", p)
	case !first && p <= before:
		d.Fail("%q stands behind %q", p, before)
	}
}

func (d decoder) paths() (all []string) {
	last := ""
	d.Array(func() {
		p := ""
		d.Object(func(key string) { d.path(key, &p) })
		d.checkPath(p, last, len(all) == 0)
		all, last = append(all, p), p
	})
	return all
}

// path reads a member that may be the path.
func (d decoder) path(key string, p *string) {
	switch key {
	case "path":
		*p = d.Text()
	case "pathBytes":
		*p = d.bytes()
	default:
		d.Raw()
	}
}

func (d decoder) skips() (all []Skip) {
	last := ""
	d.Array(func() {
		var k Skip
		d.Object(func(key string) {
			switch key {
			case "reason":
				if k.Reason = Reason(d.Text()); !k.Reason.valid() {
					d.Fail("a reason %q", k.Reason)
				}
			case "error":
				k.Err = d.Text()
			default:
				d.path(key, &k.Path)
			}
		})
		d.checkPath(k.Path, last, len(all) == 0)
		all, last = append(all, k), k.Path
	})
	return all
}

func (d decoder) files() (all []Fingerprint) {
	last := ""
	d.Array(func() {
		f := d.file()
		d.checkPath(f.Path, last, len(all) == 0)
		all, last = append(all, f), f.Path
	})
	return all
}

func (d decoder) file() (f Fingerprint) {
	moded, hashed := false, false
	d.Object(func(key string) {
		switch key {
		case "mode":
			u, err := strconv.ParseUint(d.Text(), 8, 32)
			if f.Mode, moded = fileMode(uint32(u)); err != nil {
				moded = false
			}
		case "size":
			f.Size = d.Int()
		case "modTime":
			f.ModTime = d.Int()
		case "changeTime":
			f.ChangeTime = d.Int()
		case "inode":
			f.Inode = d.Uint()
		case "hash":
			var err error
			if f.Hash, err = blob.ParseHash(d.Text()); err != nil {
				d.Fail("%v", err)
			}
			hashed = true
		case "target":
			f.Target = d.Text()
		case "targetBytes":
			f.Target = d.bytes()
		default:
			d.path(key, &f.Path)
		}
	})
	link := f.Mode.Type() == fs.ModeSymlink
	switch {
	case d.Err() != nil:
	case !moded:
		d.Fail("%q has no mode of a file, a folder or a symlink", f.Path)
	case f.Mode.IsDir() && f != Fingerprint{Path: f.Path, Mode: f.Mode}, hashed == f.Mode.IsDir(), f.Size < 0, !link && f.Target != "":
		d.Fail("%q has members that do not fit its mode", f.Path)
	case link && f.Hash != sha256.Sum256([]byte(f.Target)):
		d.Fail("the hash of %q is not that of its target", f.Path)
	}
	return f
}
