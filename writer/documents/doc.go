// Package documents reads files that other programs and people write in a project. It does
// not trust them. A [Folder] is an [fs.FS] whose paths cannot lead out of it; [ReadFile]
// and [AppendFile] are for a file that the user named by its path.
//
// The package opens only regular files and folders, and no open blocks: a FIFO, a socket or
// a device fails at once. Every read is bounded. [Text] decodes UTF-16.
//
// # Concurrency
//
// Everything may be called from any goroutine.
package documents
