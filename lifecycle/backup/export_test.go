package backup

import "github.com/lopen-dev/lopen/writer"

// CreateOn is Create on an open folder.
func CreateOn(dir writer.FS, o Options) (*Folder, error) { return create(dir, o) }

// Limit makes a Writer begin a batch every so many bytes.
func (w *Writer) Limit(bytes int64) { w.limit = bytes }
