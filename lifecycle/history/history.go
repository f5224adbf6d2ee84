package history

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// Dir is the folder's name in that of a session.
const Dir = "history"

const (
	// maxManifest bounds the first line, in bytes: it names one task at most.
	maxManifest = 16 << 10
	// maxHead is in how many bytes of a file its first line is looked for: the encoder
	// flushes each block of 128 KiB, but a frame that holds nothing can be of any size.
	maxHead = 1 << 20
	// maxActive bounds the active tasks of a manifest, and maxDependencies those that they wait for: those of
	// 10,000 snapshots are in memory together.
	maxActive       = 16
	maxDependencies = 8
)

// Reason says why a snapshot was taken.
type Reason string

// The reasons.
const (
	// Large: the change was too large for a record, which names the snapshot
	// instead. It is part of the journal and never dropped by Prune.
	Large     Reason = "large-change"
	Phase     Reason = "phase-changed"
	Component Reason = "component-completed"
	Interval  Reason = "interval"
	Iteration Reason = "iteration"
)

// A Manifest is what is known of a snapshot without reading it whole.
type Manifest struct {
	SchemaVersion int    `json:"schemaVersion"`
	Session       string `json:"session"`
	Epoch         uint64 `json:"epoch"`
	Seq           uint64 `json:"seq"`
	// After is with Large the last record that was durable when it was written: that of
	// the snapshot comes later.
	After    uint64    `json:"after,omitempty"`
	At       time.Time `json:"at"`
	Reason   Reason    `json:"reason"`
	Tasks    Tasks     `json:"tasks"`
	Messages uint64    `json:"messages"` // that the session had
	// Changed is how many changes of project files were recorded since the snapshot before, or since the session was
	// opened.
	Changed    int `json:"changed"`
	Iterations int `json:"iterations"`
	// NewIterations is how many were coalesced into the record.
	NewIterations int    `json:"newIterations,omitempty"`
	Bytes         int64  `json:"bytes"`  // of the two files, before compression
	SHA256        string `json:"sha256"` // of the two files, in hex

	codec codec.Codec
}

// Tasks are the counts of a State.
type Tasks struct {
	Total     int      `json:"total"`
	Completed int      `json:"completed"`
	Active    []string `json:"active"` // IDs
	// Dependencies are the IDs of the tasks that the active ones wait for, the first ones.
	Dependencies []string `json:"dependencies"`
}

// An ID names the record that a snapshot is of. The epoch is part of it so that a
// writer that lost the session cannot replace a snapshot of its successor.
type ID struct{ Epoch, Seq uint64 }

// ID is that of the snapshot's record.
func (m Manifest) ID() ID { return ID{m.Epoch, m.Seq} }

// Durable is a record that was durable when the snapshot was written.
func (m Manifest) Durable() uint64 {
	if m.Reason == Large {
		return m.After
	}
	return m.Seq
}

// File is the path of the snapshot's file below the session's folder.
func (m Manifest) File() string { return m.ID().file(m.codec) }

// Stem is the path of a snapshot's file without the suffix that says how it is compressed.
func (id ID) Stem() string { return fmt.Sprintf("%s/%d-%d.json", Dir, id.Epoch, id.Seq) }

func (id ID) file(c codec.Codec) string { return id.Stem() + c.Suffix() }

func (id ID) String() string { return fmt.Sprintf("%d of epoch %d", id.Seq, id.Epoch) }

func parseName(file string) (id ID, ok bool) {
	plain, c := codec.Cut(file)
	both, _ := strings.CutSuffix(plain, ".json")
	epoch, seq, _ := strings.Cut(both, "-")
	var err1, err2 error
	id.Epoch, err1 = strconv.ParseUint(epoch, 10, 63)
	id.Seq, err2 = strconv.ParseUint(seq, 10, 63)
	return id, err1 == nil && err2 == nil && id.file(c) == Dir+"/"+file
}

// codecs are how a snapshot may be compressed, the usual one first.
var codecs = []codec.Codec{codec.Zstd, codec.Gzip, codec.None}

// File is the path of a snapshot below the session's folder, however it is compressed.
func File(dir writer.FS, id ID) string {
	for _, c := range codecs {
		if _, err := dir.Lstat(id.file(c)); err == nil {
			return id.file(c)
		}
	}
	return id.file(codecs[0])
}

// Path is where a snapshot lies, for messages.
func Path(dir writer.FS, id ID) string { return filepath.Join(dir.Name(), File(dir, id)) }

// open opens a snapshot, however it is compressed.
func open(dir writer.FS, id ID) (f writer.File, size int64, c codec.Codec, err error) {
	for _, c = range codecs {
		var info fs.FileInfo
		f, info, err = writer.OpenRegular(dir, "read snapshot", id.file(c), os.O_RDONLY)
		if err == nil {
			return f, info.Size(), c, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, 0, c, err
}

// Remove drops a snapshot; one that is not there is no error. Only the holder of the
// session's lease may call it.
func Remove(dir writer.FS, id ID) error {
	for _, c := range codecs {
		if err := dir.Remove(id.file(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return writer.NewError("drop snapshot", filepath.Join(dir.Name(), id.file(c)), writer.NotCommitted, err)
		}
	}
	return nil
}

// Write makes a snapshot durable and returns its manifest with Bytes and SHA256.
// Only the holder of the session's lease may call it.
func Write(dir writer.FS, m Manifest, state, metrics []byte, o codec.Options) (Manifest, error) {
	if err := writer.MkdirDurable(dir, Dir); err != nil {
		return m, err
	}
	sum := sha256.New()
	_, _ = sum.Write(state)
	_, _ = sum.Write(metrics)
	m.SchemaVersion, m.Bytes, m.SHA256 = 1, int64(len(state)+len(metrics)), hex.EncodeToString(sum.Sum(nil))
	first, err := strictjson.Marshal(m)
	if err != nil {
		return m, fmt.Errorf("encode manifest of snapshot %s: %w", m.ID(), err)
	}
	packed, c, err := pack(o.Encoder(), append(first, '\n'), state, metrics)
	if err != nil {
		return m, fmt.Errorf("compress snapshot %s: %w", m.ID(), err)
	}
	m.codec = c
	return m, writer.ReplaceFile(dir, m.File(), packed, 0o600)
}

// Read returns the contents of state.json and metrics.json of a record. sum is
// the SHA256 that is asked for; "" takes the manifest's word. The error has class
// corrupt when the content is another, and when it is larger than its file allows: it
// takes 32 times the memory of the file, and 256 KiB, before that is seen.
func Read(dir writer.FS, id ID, sum string) (state, metrics []byte, err error) {
	f, size, c, err := open(dir, id)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	state, metrics, err = unpack(c, f, size, id, sum)
	if err != nil {
		return nil, nil, &writer.Error{Op: "read snapshot", Path: Path(dir, id), Class: writer.ClassCorrupt, Err: err}
	}
	return state, metrics, nil
}

func unpack(c codec.Codec, packed io.Reader, size int64, id ID, sum string) (state, metrics []byte, err error) {
	if size > maxBytes {
		return nil, nil, fmt.Errorf("it has %d bytes, more than the %d that are read", size, maxBytes)
	}
	in := codec.NewReader(c, io.LimitReader(packed, size))
	defer in.Close()
	return content(bufio.NewReader(in), size, id, sum)
}

// content is what comes of a file of so many bytes.
func content(in *bufio.Reader, size int64, id ID, sum string) (state, metrics []byte, err error) {
	m, err := readManifest(in, id)
	if err != nil {
		return nil, nil, err
	}
	// The buffer has the size that the manifest names and never grows: the content has that
	// many bytes, or the manifest is wrong.
	if limit := decoded(size); m.Bytes < 0 || m.Bytes > limit {
		return nil, nil, fmt.Errorf("%d bytes stand for %d, more than the %d that are read of so many", size, m.Bytes, limit)
	}
	both := make([]byte, m.Bytes)
	if n, err := io.ReadFull(in, both); err != nil {
		return nil, nil, fmt.Errorf("after %d of %d bytes: %w", n, m.Bytes, err)
	}
	switch _, err := in.ReadByte(); {
	case err == nil:
		return nil, nil, fmt.Errorf("there is more in it than the %d bytes that its manifest names", m.Bytes)
	case !errors.Is(err, io.EOF):
		return nil, nil, err
	}
	have := sha256.Sum256(both)
	if want := cmp.Or(sum, m.SHA256); hex.EncodeToString(have[:]) != want {
		return nil, nil, fmt.Errorf("the content has not the checksum %s", want)
	}
	end := bytes.IndexByte(both, '\n') + 1
	return both[:end], both[end:], nil
}

// readManifest reads the first line, of bounded length.
func readManifest(in *bufio.Reader, id ID) (Manifest, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxManifest {
			return Manifest{}, fmt.Errorf("its first line has more than the %d bytes of a manifest", maxManifest)
		}
		if err == nil {
			return decodeManifest(line, id)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return Manifest{}, fmt.Errorf("manifest: %w", err)
		}
	}
}

func decodeManifest(line []byte, id ID) (Manifest, error) {
	var m Manifest
	if err := strictjson.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	if m.SchemaVersion > 1 {
		return m, fmt.Errorf("manifest of version %d: %w", m.SchemaVersion, envelope.ErrFutureVersion)
	}
	if len(m.Tasks.Active) > maxActive || len(m.Tasks.Dependencies) > maxDependencies {
		return m, fmt.Errorf("the manifest names more than %d tasks", maxActive)
	}
	if m.SchemaVersion < 1 || m.ID() != id || len(m.SHA256) != 64 {
		return m, fmt.Errorf("the manifest is not that of snapshot %s", id)
	}
	return m, nil
}

// ReadManifest reads a snapshot's first line.
func ReadManifest(dir writer.FS, id ID) (Manifest, error) {
	f, _, c, err := open(dir, id)
	if err != nil {
		return Manifest{}, err
	}
	defer f.Close()
	in := codec.NewReader(c, io.LimitReader(f, maxHead))
	defer in.Close()
	m, err := readManifest(bufio.NewReader(in), id)
	m.codec = c
	return m, err
}

// An Unread is a snapshot that cannot be read.
type Unread struct {
	ID  ID
	Err error // of class corrupt
}

// List returns the manifests of all snapshots that can be read, and those that cannot, in
// ascending order of the records. It reads no more than their first lines. The error is
// that of listing the folder.
func List(dir writer.FS) (all []Manifest, unread []Unread, err error) {
	ids, err := IDs(dir)
	for _, id := range ids {
		m, err := ReadManifest(dir, id)
		if err != nil {
			unread = append(unread, Unread{id, &writer.Error{Op: "read snapshot", Path: Path(dir, id), Class: writer.ClassCorrupt, Err: err}})
			continue
		}
		all = append(all, m)
	}
	return all, unread, err
}

// IDs are those of all snapshots, in ascending order of the records.
func IDs(dir writer.FS) (ids []ID, err error) {
	entries, err := dir.ReadDir(Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, writer.NewError("list snapshots", filepath.Join(dir.Name(), Dir), writer.NotCommitted, err)
	}
	for _, e := range entries {
		if id, ok := parseName(e.Name()); ok {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b ID) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Epoch, b.Epoch)) })
	return slices.Compact(ids), nil
}

// Prune drops the oldest snapshots of each reason beyond n; 0 drops none. Those of
// large changes and of iterations, which were asked for by name, stay. Only the holder of
// the session's lease may call it.
func Prune(dir writer.FS, n int) error {
	if n <= 0 {
		return nil
	}
	all, _, err := List(dir)
	if err != nil {
		return err
	}
	count := map[Reason]int{}
	for _, m := range slices.Backward(all) {
		if m.Reason == Large || m.Reason == Iteration {
			continue
		}
		if count[m.Reason]++; count[m.Reason] <= n {
			continue
		}
		if err := Remove(dir, m.ID()); err != nil {
			return err
		}
	}
	return nil
}
