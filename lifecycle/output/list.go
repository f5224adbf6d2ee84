package output

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A File is one of the files of an attempt: the end of its name.
type File string

// The files that an attempt has. Raw and Prompt stay of failed attempts, or of all.
const (
	Log    File = ".log"
	Raw    File = ".raw"
	Prompt File = ".prompt.md"

	metaEnd = ".json"
)

// Stored is an attempt whose output is on the disk.
type Stored struct {
	Attempt
	Iteration int    // of the session
	Name      string // of its files, without what tells them apart
	Files     []File // that it has
	Bytes     int64  // of the log that are stored

	again int      // a later one of the same iteration, from 2
	all   []string // the names of its files
	sum   int64    // of their bytes
}

// Path returns the name of a file that the attempt has.
func (k *Stored) Path(f File) string {
	for _, c := range codec.All { // as the Reader looks for it
		if slices.Contains(k.all, k.Name+string(f)+c.Suffix()) {
			return k.Name + string(f) + c.Suffix()
		}
	}
	return ""
}

// Has says whether an attempt has a file.
func (k *Stored) Has(f File) bool { return slices.Contains(k.Files, f) }

// fileName is what the files of an attempt are called: iteration, which of that number,
// what it is, from which byte on, how it is compressed.
var fileName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(([0-9]{6,9})(?:-([0-9]{1,4}))?)(\.json|\.log|\.raw|\.prompt\.md)(?:\.([0-9]{1,18}))?(\.zst|\.gz)?$`)
})

// maxMeta bounds what is read of a file about an attempt, in bytes.
const maxMeta = 64 << 10

// List returns the attempts of which a folder has output, the oldest first. Other
// files do not count. Of an attempt whose .json cannot be read only the names are known.
func List(dir writer.FS) ([]Stored, error) {
	all, err := names(dir)
	for i := range all {
		all[i].Bytes = stored(dir, all[i].all)
		data, err := writer.ReadFile(dir, all[i].Name+metaEnd, maxMeta)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) { // of its begin and of its end: one that is cut off says nothing
			a := all[i].Attempt
			if strictjson.Unmarshal(line, &a) != nil {
				break
			}
			all[i].Attempt = a
		}
	}
	return all, err
}

// stored returns the size in bytes of the log among these files, decompressed.
func stored(dir writer.FS, files []string) (n int64) {
	for _, file := range files {
		plain, c := codec.Cut(file)
		if m := fileName().FindStringSubmatch(plain); File(m[4]) != Log || c != codec.None && slices.Contains(files, plain) {
			continue
		}
		f, info, err := writer.OpenRegular(dir, "read", file, os.O_RDONLY)
		if err != nil {
			continue
		}
		if size, err := codec.Size(c, f, info.Size()); err == nil {
			n += size
		}
		_ = f.Close() // nothing was written
	}
	return n
}

// names is List without what the files about the attempts say.
func names(dir writer.FS) ([]Stored, error) {
	entries, err := dir.ReadDir(".")
	if err != nil {
		return nil, err
	}
	byName := map[string]*Stored{}
	for _, e := range entries {
		m := fileName().FindStringSubmatch(e.Name())
		info, err := e.Info()
		if m == nil || err != nil || !info.Mode().IsRegular() {
			continue
		}
		k := byName[m[1]]
		if k == nil {
			k = &Stored{Name: m[1]}
			k.Iteration, _ = strconv.Atoi(m[2])
			k.again, _ = strconv.Atoi(m[3])
			byName[m[1]] = k
		}
		k.sum += min(info.Size(), MaxFile) // a larger one is sparse, and no output
		k.all = append(k.all, e.Name())
		if m[4] != metaEnd && m[5] == "" && !k.Has(File(m[4])) {
			k.Files = append(k.Files, File(m[4]))
		}
	}
	all := make([]Stored, 0, len(byName))
	for _, k := range byName {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b Stored) int {
		return cmp.Or(cmp.Compare(a.Iteration, b.Iteration), cmp.Compare(a.again, b.again), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// thin removes the oldest attempts, those that succeeded first, until the folder takes no
// more than limit bytes. The one that is named stays.
func thin(dir writer.FS, stays string, limit int64) error {
	all, err := names(dir)
	if err != nil {
		return err
	}
	var sum int64
	for _, k := range all {
		sum += k.sum
	}
	if sum <= limit {
		return nil
	}
	if all, err = List(dir); err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b Stored) int { return cmp.Compare(lasts(a), lasts(b)) })
	var errs []error
	for _, k := range all {
		if sum <= limit {
			break
		}
		if k.Name == stays {
			continue
		}
		sum -= k.sum
		for _, name := range k.all {
			errs = append(errs, remove(dir, name))
		}
	}
	return errors.Join(errs...)
}

// lasts is 0 for what goes first.
func lasts(k Stored) int {
	if k.Outcome == record.Done {
		return 0
	}
	return 1
}

// removeFiles removes one of an attempt's files, with the parts of its end.
func removeFiles(dir writer.FS, name string, f File) error {
	parts, err := partsOf(dir, name+string(f))
	for _, p := range append(parts, part{name: name + string(f)}) {
		for _, c := range codec.All {
			err = errors.Join(err, remove(dir, p.name+c.Suffix()))
		}
	}
	return err
}

func remove(dir writer.FS, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return writer.NewError("remove", filepath.Join(dir.Name(), name), writer.NotCommitted, err)
	}
	return nil
}
