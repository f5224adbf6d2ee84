package prompt

import (
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/writer/documents"
)

// Documents are those of a project that prompts are written from.
type Documents struct {
	FS   fs.FS  // the project's folder; nothing leads out of it
	Spec string // the specification, relative to FS, with slashes
	// Outlines returns the outline of a document of FS.
	Outlines func(name string) (*cache.Outline, error)
}

// MaxDocument bounds a specification and any other document, in bytes.
const MaxDocument = 16 << 20

// ReadSpec reads a specification, at most MaxDocument of it, in UTF-8.
func ReadSpec(docs fs.FS, name string) ([]byte, error) {
	src, err := documents.Read(docs, name, MaxDocument)
	if err == nil {
		src, err = documents.Text(src)
	}
	if err != nil {
		return nil, fmt.Errorf("read specification: %w", err)
	}
	return src, nil
}
