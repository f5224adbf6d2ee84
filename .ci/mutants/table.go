package main

const (
	files   = "./writer ./lifecycle"
	streams = "./writer/journal ./lifecycle"
	store   = "./lifecycle"
)

var mutants = []mutant{
	{"replace: fsync of the file", "writer/replace.go", "\tif err == nil {\n\t\terr = f.Sync()\n\t}\n", "", files},
	{"replace: fsync of the folder", "writer/replace.go", "\tif err := dir.SyncDir(path.Dir(name)); err != nil {\n\t\treturn NewError(\"replace\", full, NotDurable, err)\n\t}\n", "", files},
	{"create: fsync of the folder", "writer/replace.go", "\tif err := dir.SyncDir(path.Dir(name)); err != nil {\n\t\treturn NewError(\"create\", full, NotDurable, err)\n\t}\n", "", "./writer"},
	{"folder: fsync of its parent", "writer/replace.go", "\tif err := dir.SyncDir(path.Dir(name)); err != nil {\n\t\treturn NewError(\"make folder\", full, NotDurable, err)\n\t}\n", "", files},
	{"lock: the held file is the one of the name", "writer/lock.go", "case !SameFile(l.held, there):", "case !SameFile(l.held, there) && false:", files},
	{"append: fdatasync", "writer/journal/writer.go", "w.f.Datasync(); err != nil", "error(nil); err != nil", streams},
	{"append: a short write is an error", "writer/journal/writer.go", "if err == nil && n < len(p) {", "if false {", streams},
	{"append: the error is sticky", "writer/journal/writer.go", "\tif w.broken != nil {\n\t\treturn w.last, w.broken\n\t}\n", "\tif w.f == nil {\n\t\treturn w.last, w.broken\n\t}\n", streams},
	{"append: a segment whose fsync failed is given up", "writer/journal/writer.go", "\tw.drop()\n\tif err := w.next(); err != nil {\n\t\tw.broken = err\n\t\treturn err\n\t}\n\tw.broken = nil\n", "\tw.broken = nil\n\tif w.f == nil {\n\t\tw.drop()\n\t\tif err := w.next(); err != nil {\n\t\t\tw.broken = err\n\t\t\treturn err\n\t\t}\n\t}\n", streams},
	{"segment: fsync of the folder", "writer/journal/writer.go", "\tif err := w.dir.SyncDir(\".\"); err != nil {\n\t\tw.drop()\n\t\treturn w.error(\"open segment\", writer.NotDurable, err)\n\t}\n", "", streams},
	{"segment: after says what was durable", "writer/journal/writer.go", "Segment: w.at.n, After: w.last}\n\terr := w.create(w.at.String(), h)", "Segment: w.at.n, After: Position{}}\n\terr := w.create(w.at.String(), h)", streams},
	{"epoch: records are copied into it", "writer/journal/writer.go", "refs := log.Above(w.last.Seq)", "refs := log.Above(w.last.Seq)\n\tif len(refs) > 0 {\n\t\tw.last = refs[len(refs)-1].Position\n\t}\n\trefs = nil", streams},
	{"epoch: fsync of the copies", "writer/journal/writer.go", "\treturn w.f.Sync()\n", "\treturn nil\n", streams},
	{"epoch: fsync of the folder", "writer/journal/writer.go", "\tif err := dir.SyncDir(\".\"); err != nil {\n\t\tw.drop()\n\t\treturn nil, w.error(\"open journal\", writer.NotDurable, err)\n\t}\n", "", streams},
	{"epoch: claimed by a link that fails", "writer/journal/writer.go", "err := w.dir.Link(temp, final)", "err := w.dir.Rename(temp, final)", streams},
	{"read: the checksum", "writer/journal/format.go", "if !bytes.Equal(crc, have) ||", "if !bytes.Equal(crc, crc) ||", streams},
	{"read: after voids what lies beyond it", "writer/journal/chain.go", "c.Records = c.Records[:kept]", "c.Records = c.Records[:len(c.Records)]", streams},
	{"read: a record behind a hole is not applied", "writer/journal/chain.go", "\t\t\tif kind != Damaged {", "\t\t\tif false {", streams},
	{"read: the synced mark tells damage from a torn tail", "writer/journal/scan.go", "durable = max(durable, int64(it.synced))", "durable = max(durable, 0)", streams},
	{"read: a lost record excludes", "lifecycle/load.go", "if log.Lost > 0 {", "if false {", streams},
	{"read: a snapshot lies on the chain", "writer/journal/log.go", "if j.segment.epoch > epoch && j.after.Seq < seq {", "if j.segment.epoch > epoch && j.after.Seq < seq && false {", streams},
	{"load: metrics are replayed from their own record", "lifecycle/session/replay.go", "case m.at.Seq >= s.at.Iterations && m.at.Seq < s.at.Seq:", "default:", "./lifecycle/session ./lifecycle"},
	{"load: the iterations of a record are counted once", "lifecycle/session/replay.go", "if rec.Seq > r.metrics.at.Seq {\n\t\t\t\treturn", "if true {\n\t\t\t\treturn", "./lifecycle/session ./lifecycle"},
	{"load: the checksum of state.json", "lifecycle/session/decode.go", "if !bytes.Equal(data[i:], want) {", "if !bytes.Equal(want, want) {", "./lifecycle/session ./lifecycle"},
	{"open: damaged sessions move aside", "lifecycle/session.go", "return nil, c.store.setAside(c.id, err)", "return nil, err", store},
	{"open: what was only edited stays", "lifecycle/aside.go", " || errors.Is(cause, session.ErrChecksum) {", " {", store},
	{"commit: the lease is looked at", "lifecycle/committer.go", "\tif err := c.check(); err != nil {\n\t\treturn actors.Committed{}, err\n\t}\n", "", store},
	{"commit: a snapshot is durable before its record", "lifecycle/history/history.go", "return m, writer.ReplaceFile(dir, name(m.Seq), packed, 0o600)", "f, err := dir.OpenFile(name(m.Seq), 0x41|0x200, 0o600)\n\tif err != nil {\n\t\treturn m, err\n\t}\n\t_, _ = f.WriteAt(packed, 0)\n\treturn m, f.Close()", store},
	{"create: the ID is reserved first", "lifecycle/ids.go", "\tif err := writer.ReplaceFile(s.root(), idsFile, append(data, '\\n'), filePerm); err != nil {\n\t\treturn session.ID{}, fmt.Errorf(\"reserve session id: %w\", err)\n\t}\n", "\t_ = data\n", store},
	{"create: fsync of the sessions' folder", "lifecycle/create.go", "\tif err = root.SyncDir(sessionsDir); err != nil {\n\t\treturn writer.NewError(\"create session\", filepath.Join(root.Name(), final), writer.NotDurable, err)\n\t}\n", "", store},
	{"actor: Sync fails while paused", "actors/actor.go", "\t\tif !b.retry {\n\t\t\treturn p\n\t\t}\n", "\t\tif !b.retry {\n\t\t\treturn nil\n\t\t}\n", "./actors"},
	{"actor: Recover comes before the next commit", "actors/actor.go", "\t\tif err := a.guard(a.commit.Recover); err != nil {\n\t\t\treturn a.pause(err, p.Durable)\n\t\t}\n", "\t\t_ = p.Durable\n", "./actors ./lifecycle"},
	{"actor: a State that only Update made is committed", "actors/actor.go", "if a.pending.Saves() > 0 || a.newest.Load() != a.durable.Load() {\n\t\tif err := a.commitPending()", "if a.pending.Saves() > 0 {\n\t\tif err := a.commitPending()", "./actors ./lifecycle"},
	{"actor: a pause is raised", "actors/actor.go", "\t\tcase a.critical <- p:\n\t\t\treturn p\n", "\t\tcase a.critical <- nil:\n\t\t\treturn p\n", "./actors ./lifecycle"},
	{"prune: the lease is taken", "lifecycle/trash.go", "\tlease, err := writer.TryLock(s.root(), sessionsDir+\"/\"+id.String()+\"/\"+leaseFile, writer.Self(s.opts.Command))\n\tif err != nil {\n\t\treturn fmt.Errorf(\"session %s: %w\", id, err)\n\t}\n\treturn errors.Join(fn(), lease.Unlock())\n", "\treturn fn()\n", store},
	{"delete: renamed away before anything is removed", "lifecycle/trash.go", "\tif err := s.move(name, away); err != nil {\n\t\treturn err\n\t}\n", "\taway = name\n", store},
	{"prune: both folders are synced", "lifecycle/trash.go", "for _, name := range []string{to, from} {", "for _, name := range []string{} {", store},
	{"removed folder: noticed before a commit", "lifecycle/aside.go", "return &Error{Op: \"save session\", Path: c.dir.Name(), Class: writer.ClassRemoved, Err: errGone}", "return nil", store},
	{"full disk: the reserve is given up", "lifecycle/committer.go", "|| !c.store.giveUpBallast() {", "|| true {", store},
	{"blob: fsync of the content", "writer/blob/put.go", "err = f.Sync()", "err = error(nil)", "./writer/blob"},
}
