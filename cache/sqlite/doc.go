// Package sqlite opens SQLite databases. It is the only package that knows the driver.
//
// There are two kinds. [OpenIndex] opens a database of ours, which can be derived again:
// it has FTS5, a checksum on each page, and a write-ahead log, and only its owner may read
// it. [OpenCopy] opens a private copy of another program's database, whose content is not
// trusted.
//
// The driver is ncruces/go-sqlite3: SQLite translated to Go through WebAssembly, without
// cgo. Beside modernc.org/sqlite it inserts into FTS5 1.2 to 1.4 times as fast and brings
// checksums of pages; what a damaged or hostile database makes SQLite write out of
// bounds stays in one slice of this process. Its binary is 2.4 MB larger.
//
// # Concurrency
//
// A database may be used from any number of goroutines, which share one connection. An
// index may be open in several processes: readers see the last commit while one writes.
//
// # Crash safety
//
// The log of an index is synced before its pages are overwritten. A power cut may take the
// last commits and leaves the ones before them. [Damaged] says that a file is no database,
// or that a page of it is not as it was written.
package sqlite
