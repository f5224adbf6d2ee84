package carry

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

const (
	maxProjectLine = 64 << 10
	// maxNamed bounds the names in a report.
	maxNamed = 10
)

// compare compares what the project's files were with those that are here, as it streams.
func (r *Received) compare(ctx context.Context, e bundle.Entry) error {
	if r.arrived[e.Name] {
		return refused(e.Name, "it is there twice")
	}
	r.arrived[e.Name] = true
	in := bufio.NewReaderSize(r.source, maxProjectLine)
	for {
		text, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(text) == 0:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return refused(e.Name, "line %d is cut off, or has more than %d bytes", r.Files.Listed+1, maxProjectLine)
		case err != nil:
			return r.source.failed(err)
		}
		var l projectLine
		err = strictjson.Unmarshal(text, &l)
		name := l.Path
		if l.Path == "" {
			name = string(l.Raw)
		}
		if clean, cerr := files.CleanPath(name); err == nil && (cerr != nil || clean != name) {
			err = errors.New("it has no path inside the project")
		}
		if err != nil {
			return refused(e.Name, "line %d: %w", r.Files.Listed+1, err)
		}
		r.Files.Listed++
		if r.target.Project != nil {
			r.Files.add(name, compareFile(ctx, r.target.Project, name, l))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// add adds the result of comparing a file.
func (f *Files) add(name string, err error) {
	switch {
	case err == nil:
		f.Equal++
		return
	case errors.Is(err, fs.ErrNotExist):
		f.Missing++
	default:
		f.Different++
	}
	if len(f.Names) < maxNamed {
		f.Names = append(f.Names, name)
	}
}

var errDifferent = errors.New("it is different")

// compareFile returns nil if the project has what a line says.
func compareFile(ctx context.Context, project writer.FS, name string, l projectLine) error {
	info, err := project.Lstat(name)
	switch {
	case err != nil:
		return err
	case l.Target != "":
		if target, err := project.Readlink(name); err != nil || target != l.Target {
			return errDifferent
		}
		return nil
	case l.SHA256 == "" && info.IsDir() && info.Mode().Perm() == l.Mode.Perm():
		return nil
	case !info.Mode().IsRegular() || info.Size() != l.Size || info.Mode().Perm() != l.Mode.Perm():
		return errDifferent
	}
	f, _, err := writer.OpenRegular(project, "compare", name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if err := pump(ctx, f, func(p []byte) error { _, err := sum.Write(p); return err }); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != l.SHA256 {
		return errDifferent
	}
	return nil
}
