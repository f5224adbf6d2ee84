// Package backup keeps streams of entries in another place, again and again, and adds only
// what is new there.
//
// A [Folder] is a backup's folder: a store of objects (writer/blob) and one sealed file for
// each [Snapshot]. [Folder.Begin] returns a [Writer], which takes the entries of one snapshot:
// it is the sink that `session export` writes bundles to. [Folder.Source] returns them again, as
// a bundle's reader does. So a backup is an export into a sink that has most of it already, and
// a restore is an import from another source.
//
// A file is cut into chunks of 64 KiB, and each chunk is an object: of a file that was appended
// to, only the last chunk is new. The list of entries is cut into objects as well, at entries
// that their checksum chooses: where nothing changed, two snapshots share them. tree.go has how
// one hash stands for any number of objects.
//
// # Concurrency
//
// A Folder may be used from any goroutine, a Writer or a [Source] from one at a time. A Writer
// and [Folder.Prune] hold the folder's lock; a second one fails with class busy and names the
// holder. Reading takes no lock and writes nothing, so that a backup on a medium that is
// read-only can be read. A snapshot that Prune removes meanwhile ends its reader with an error.
//
// # Crash safety
//
// A snapshot's file is created as the last step, when everything that it names is durable. Until
// then nothing that was there has changed, and a crash leaves objects that no snapshot names: the
// next Writer uses them, or a sweep removes them. Before a Writer uses an object that it finds, it
// syncs the folder that has the object's name, since the process that stored it may have ended
// before its sync. After a sync that failed, objects that no snapshot names are removed: a second
// sync would report success for a name that is not on the disk. Prune removes the file of a
// snapshot durably before it removes an object.
//
// # Caveats
//
// Who can write into the folder can remove or replace a whole snapshot. Of an encrypted backup
// the names of files tell the number, the sizes and the SHA-256 of large contents.
package backup
