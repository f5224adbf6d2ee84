// Package crashfs is a disk in memory, under the seam [writer.FS], that can lose
// power. It tells what a program sees (the cache) from what a power cut leaves (the
// durable image) and lists the images that a cut may leave at a moment. It is for tests.
//
// # Model
//
// A file has a cached content, a durable content and a list of changes in
// between. Sync makes the changes durable, not the file's name; Datasync leaves a
// change of mode out. A folder has cached and durable entries; the changes in
// between are in one list for the whole disk, since a rename belongs to two
// folders and happens as a whole. SyncDir makes those of a folder durable, with its
// mode, and of another folder those before a rename that it shares with the first. A file
// without a durable name is gone after a cut.
//
// A failed sync loses what it was to write, as on Linux: on [Ext4] the cache keeps
// showing it and no later sync writes it, on [XFS] the cache goes back to the
// durable content. A truncation is metadata and stays pending on Ext4. A failed
// SyncDir loses the folder's changes in the same way until the folder is changed
// again.
//
// # What it is stricter and laxer about than a real disk
//
// Neither file system syncs a name with a new file's data here, though both do.
// Lost bytes do not come back when others of their page are written. A write within
// one block of 512 bytes is whole or absent, or garbage where a variant says so.
// Two changes of one name keep their order, and what builds on a lost one is lost.
// Holes take space. There are no owners, and no permissions are checked.
//
// # Concurrency
//
// All methods may be called from any goroutine. A disk has one mutex; tests that
// look at many cuts at the same time take a [Disk.Snapshot] for each goroutine.
package crashfs
