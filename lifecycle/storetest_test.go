package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/storetest"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

func TestStoreInFiles(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Config[*lifecycle.Session]{New: func(t storetest.T) storetest.Place[*lifecycle.Session] {
		dir := t.TempDir()
		project, err := writer.OpenFS(dir)
		require.NoError(t, err)
		t.Cleanup(func() { _ = project.Close() })
		now := clock()
		return storetest.Place[*lifecycle.Session]{Project: project, Open: func() (lifecycle.Sessions[*lifecycle.Session], error) {
			store, _, err := lifecycle.Init(dir, lifecycle.Options{Now: now})
			return store, err
		}}
	}})
}

func TestStoreInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Config[*lifecycle.Session]{New: func(storetest.T) storetest.Place[*lifecycle.Session] {
		disk := crashfs.New(crashfs.Ext4)
		now := clock()
		return storetest.Place[*lifecycle.Session]{Project: disk.FS(), Open: func() (lifecycle.Sessions[*lifecycle.Session], error) {
			store, err := lifecycle.InitOn(disk.FS(), lifecycle.Options{Now: now})
			return store, err
		}}
	}})
}
