package files

import (
	"path"
	"strings"
)

// Beside are the suffixes of the files that SQLite keeps beside a database. Each belongs to
// exactly the content of the database and of the others: all of them stay or go together.
var Beside = []string{"-wal", "-shm", "-journal"}

// DatabaseOf returns the path of the database to which a file belongs by its name, or the path itself.
func DatabaseOf(name string) string {
	for _, suffix := range Beside {
		if of, ok := strings.CutSuffix(name, suffix); ok && of != "" && !strings.HasSuffix(of, "/") {
			return of
		}
	}
	return name
}

// besideTaken reports whether a file that the rules in force ignore belongs by its name to a database that
// is taken: a database is not to be brought back without it.
func (w *walker) besideTaken(dir folder, name string, at place) bool {
	of := DatabaseOf(name)
	if of == name || w.opts.Keep == nil {
		return false
	}
	at.path = path.Join(parent(at.path), of)
	st, err := dir.stat(at.path, of)
	return err == nil && st.mode.IsRegular() && w.judge(&at, of, st.mode) == taken
}
