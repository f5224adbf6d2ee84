package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/journal"
)

const manifestFile = "manifest.json"

// beside reads what a session has beside its state: what is damaged of it costs
// what it is for, and not the session.
func (r *Report) beside(dir writer.FS) {
	all, unread, err := history.ListAll(dir)
	if err != nil {
		r.damaged(history.Dir, err)
	}
	for _, m := range all {
		if _, _, err := history.Read(dir, m.ID(), m.SHA256); err != nil {
			unread = append(unread, history.Unread{ID: m.ID(), Err: err})
		}
	}
	for _, u := range unread {
		r.Faults = append(r.Faults, Fault{File: u.ID.Name(), Seq: u.ID.Seq, Kind: "damaged", Problem: u.Err.Error()})
		r.worse(HistoryDamaged)
	}
	for _, each := range []struct {
		name string
		v    any
	}{{metaFile, &metaJSON{}}, {recoveryFile, &recoveryJSON{}}} {
		if err := readSealed(dir, each.name, each.v); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.damaged(each.name, err)
		}
	}
	if cps, err := openDir(dir, checkpointsDir); err == nil {
		if err := checkpoint.New(cps, nil, nil).CheckMarks(); err != nil {
			r.damaged(checkpointsDir, err)
		}
		_ = cps.Close()
	}
	for _, name := range manifests(dir) {
		if _, err := dependencies(dir, name); err != nil {
			r.damaged(name, err)
		}
	}
}

// streams reads the messages and the transcript: what is lost of them costs just that.
func (r *Report) streams(dir writer.FS, at session.Mark) {
	for _, err := range readMessages(dir, at.Messages) {
		if err != nil {
			r.damaged(messagesStream, err)
		}
	}
	r.headers(dir, messagesStream, at.Messages)
	for _, err := range journal.ReadStream(dir, transcriptStream, journal.Tail(at.Transcript)) {
		if err != nil {
			r.damaged(transcriptStream, err)
		}
	}
	r.headers(dir, transcriptStream, at.Transcript)
}

// headers looks at what a reader of a stream can do without: which file each one goes on
// from.
func (r *Report) headers(dir writer.FS, name string, to session.Tail) {
	files, err := journal.DamagedHeaders(dir, name, journal.Tail(to))
	if err != nil {
		r.damaged(name, err)
	}
	for _, file := range files {
		r.damaged(file, errors.New("its first line is damaged; no message or event is lost by that"))
	}
}

func (r *Report) damaged(name string, err error) {
	r.Faults = append(r.Faults, Fault{File: name, Kind: "damaged", Problem: err.Error()})
	r.worse(Flawed)
}

// manifests are the paths of a session's checkpoint manifests.
func manifests(dir writer.FS) (all []string) {
	entries, err := dir.ReadDir(checkpointsDir)
	if err != nil {
		return nil // there are none
	}
	for _, e := range entries {
		if _, err := checkpoint.ParseID(e.Name()); err == nil && e.IsDir() {
			all = append(all, checkpointsDir+"/"+e.Name()+"/"+manifestFile)
		}
	}
	slices.Sort(all)
	return all
}

// dependencies are the blobs that a checkpoint's manifest names.
func dependencies(dir writer.FS, name string) (all []blob.Hash, err error) {
	data, err := writer.ReadText(dir, name, checkpoint.MaxManifest)
	if err != nil {
		return nil, err
	}
	m, err := checkpoint.Decode(data)
	if err != nil {
		return nil, err
	}
	m.Blobs(func(h blob.Hash, _ int64) { all = append(all, h) })
	return all, nil
}

// VerifyData reads every blob that the session of a report names, which may be many
// bytes, and adds to the report what is damaged or missing.
func (s *Store) VerifyData(r *Report) error {
	dir, err := s.sessionDir(r.ID)
	if err != nil {
		return fmt.Errorf("verify session %s: %w", r.ID, err)
	}
	defer dir.Close()
	root, err := openDir(s.root(), blobsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	read := map[blob.Hash]error{}
	for _, name := range manifests(dir) {
		all, _ := dependencies(dir, name) // beside tells of a damaged one
		for _, h := range all {
			_, seen := read[h]
			switch {
			case seen:
				continue
			case root == nil:
				read[h] = ErrNotFound
			default:
				read[h] = blob.New(root).Verify(h)
			}
			if err := read[h]; err != nil {
				r.damaged(blobsDir+"/"+h.String()[:2]+"/"+h.String()[2:], fmt.Errorf("%s names it: %w", name, err))
			}
		}
	}
	r.Blobs = len(read)
	if root != nil {
		return root.Close()
	}
	return nil
}

// VerifyBlobs reads every blob of the store, whoever names it, and returns how many
// there are and which are damaged.
func (s *Store) VerifyBlobs() (n int, damaged []Fault, err error) {
	root, err := openDir(s.root(), blobsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	defer root.Close()
	store := blob.New(root)
	shards, err := root.ReadDir(".")
	if err != nil {
		return 0, nil, fmt.Errorf("list blobs: %w", err)
	}
	for _, shard := range shards {
		if !shard.IsDir() {
			continue
		}
		blobs, err := root.ReadDir(shard.Name())
		if err != nil {
			return n, damaged, fmt.Errorf("list blobs: %w", err)
		}
		for _, e := range blobs {
			h, err := blob.ParseHash(shard.Name() + e.Name())
			if err != nil {
				continue // a temporary file
			}
			n++
			err = store.Verify(h)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // or swept meanwhile
				damaged = append(damaged, Fault{File: blobsDir + "/" + shard.Name() + "/" + e.Name(), Kind: "damaged", Problem: err.Error()})
			}
		}
	}
	return n, damaged, nil
}
