package shelf

import (
	"path/filepath"
	"time"

	"github.com/lopen-dev/lopen/writer"
)

// Usage is what the entries of a shelf take.
type Usage struct {
	Entries int
	Bytes   int64
	Oldest  time.Time // of the entries; zero when there are none
}

// Use says what the entries of a shelf below a store's folder take.
func Use(store, name string) (u Usage, err error) {
	err = on(store, "list cache", name, func(dir writer.FS) error {
		u, err = use(dir, name)
		return err
	})
	return u, err
}

// Clear removes the entries of a shelf and says what they took.
func Clear(store, name string) (u Usage, err error) {
	err = on(store, "clear cache", name, func(dir writer.FS) error {
		if u, err = use(dir, name); err != nil {
			return err
		}
		return dir.RemoveAll(cacheDir + "/" + name)
	})
	return u, err
}

func on(store, op, name string, do func(writer.FS) error) error {
	dir, err := writer.OpenFS(store)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := do(dir); err != nil {
		return writer.NewError(op, filepath.Join(dir.Name(), cacheDir, name), writer.NotCommitted, err)
	}
	return nil
}

func use(dir writer.FS, name string) (u Usage, err error) {
	all, used, err := list(dir, cacheDir+"/"+name)
	if err != nil {
		return u, err
	}
	for _, info := range all {
		if u.Oldest.IsZero() || info.ModTime().Before(u.Oldest) {
			u.Oldest = info.ModTime()
		}
	}
	u.Entries, u.Bytes = len(all), used
	return u, nil
}
