package lifecycle

import (
	"io/fs"
	"os"

	"github.com/lopen-dev/lopen/writer"
)

// Documents is a folder that is read, as an fs.FS in which no open waits.
type Documents = writer.Documents

// OpenDocuments opens the folder of a project, or any other, for reading what others
// put there.
func OpenDocuments(folder string) (*Documents, error) { return writer.OpenDocuments(folder) }

// OpenRoot is [os.OpenRoot], but for a FIFO in the folder's place, which is an error at once.
func OpenRoot(path string) (*os.Root, error) { return writer.OpenRoot(path) }

// DocumentsOf reads a folder that is open already. To close either closes both.
func DocumentsOf(root *os.Root) *Documents { return writer.DocumentsOf(root) }

// ReadDocument reads a regular file of at most limit bytes of a folder, best of
// [Documents].
func ReadDocument(docs fs.FS, name string, limit int64) ([]byte, error) {
	return writer.ReadDocument(docs, name, limit)
}

// ReadRegular reads a file of at most limit bytes that the user named, or that is the
// user's own. A FIFO or a device in its place is an error at once.
func ReadRegular(path string, limit int64) ([]byte, error) { return writer.ReadRegular(path, limit) }

// AppendRegular opens a file that the user named for appending, 0600 where it is new. A
// symlink or a FIFO in its place is an error.
func AppendRegular(path string) (*os.File, error) { return writer.AppendRegular(path) }
