package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// keepOld keeps state.json and metrics.json as an older version wrote them, as
// state.v1.json and metrics.v1.json: the next commits replace the files themselves. A
// crash leaves the old files, with or without their copies, or new ones with both.
// The caller holds the session's lease.
func keepOld(dir writer.FS, version int64) error {
	for _, name := range []string{stateFile, metricsFile} {
		data, err := writer.ReadFile(dir, name, maxFile)
		if err != nil {
			return err
		}
		old := fmt.Sprintf("%s.v%d.json", strings.TrimSuffix(name, ".json"), version)
		err = writer.CreateFile(dir, old, data, filePerm)
		if err != nil && !errors.Is(err, fs.ErrExist) { // it was kept before a crash
			return err
		}
	}
	return nil
}
