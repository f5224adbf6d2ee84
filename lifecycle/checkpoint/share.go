package checkpoint

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer"
)

// inheritedName is a file with the highest ID that a session began with. The records
// that those checkpoints note are of the session that they come from.
const inheritedName = "inherited"

// Inherited is the highest ID that the session began with; 0 where it began with none.
func (s *Store) Inherited() (ID, error) {
	return s.readMark(inheritedName)
}

// UpTo returns those that a session has that goes on from a record of this one: made
// up to then, or inherited. What cannot be read is none of them.
func (s *Store) UpTo(seq uint64) (ids []ID, err error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, info := range all {
		if info.Err == nil && (info.Inherited || info.Seq <= seq) {
			ids = append(ids, info.ID)
		}
	}
	return ids, nil
}

// Share gives checkpoints in one folder to a session whose folder for them is made
// here, by hard link, or by a copy where links are refused: a manifest never changes,
// and a sweep looks at both. Both folders are below root. One that is removed meanwhile is left out. It is
// durable with the new folder's own name. The caller keeps sweeps away until then.
func Share(root writer.FS, from, to string, ids []ID) (shared []ID, err error) {
	failed := func(name string, err error) error {
		return writer.NewError("share checkpoints", filepath.Join(root.Name(), name), writer.NotCommitted, err)
	}
	for _, id := range ids {
		if len(shared) == 0 {
			if err := root.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, failed(to, err)
			}
		}
		dir := to + "/" + id.String()
		if err := root.Mkdir(dir, 0o700); err != nil {
			return nil, failed(dir, err)
		}
		err := link(root, from+"/"+id.String()+"/"+manifestName, dir+"/"+manifestName)
		if errors.Is(err, fs.ErrNotExist) {
			if err := root.RemoveAll(dir); err != nil {
				return nil, failed(dir, err)
			}
			continue
		}
		if err == nil {
			if err = link(root, from+"/"+id.String()+"/"+pinName, dir+"/"+pinName); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		if err != nil {
			return nil, failed(dir, err)
		}
		shared = append(shared, id)
	}
	if len(shared) == 0 {
		return nil, nil
	}
	for _, id := range shared { // after all the links: the first sync has most file systems write them together
		dir := to + "/" + id.String()
		if err := root.SyncDir(dir); err != nil {
			return nil, failed(dir, err)
		}
	}
	return shared, writeMark(root, to+"/"+inheritedName, shared[len(shared)-1])
}

func link(root writer.FS, from, to string) error {
	err := root.Link(from, to)
	if writer.RefusesLinks(err) {
		err = writer.CopyFile(root, from, to, filePerm)
	}
	return err
}
