package lifecycle_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// Nothing that a caller can reach takes an entry as it is: what has not been checked and
// redacted would be acknowledged and be on the disk.
func TestTheFrontDoorHasNoWayAroundRedaction(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var look func(path string, typ reflect.Type)
	look = func(path string, typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			for j := range m.Type.NumIn() {
				in := m.Type.In(j)
				require.NotContains(t, []reflect.Type{reflect.TypeFor[actors.Entry](), reflect.TypeFor[[]actors.Entry]()}, in, "%s.%s", path, m.Name)
			}
		}
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() {
				look(path+"."+f.Name, f.Type)
			}
		}
	}
	look("Session", reflect.TypeFor[*lifecycle.Session]())
	require.True(t, seen[reflect.TypeFor[*lifecycle.Session]()])
}

// Only a session whose process died is found active and counts as crashed.
func TestCloseOfAnActiveSessionIsNoCrash(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	for name, end := range map[string]func(*lifecycle.Store, *lifecycle.Session) error{
		"session": func(_ *lifecycle.Store, s *lifecycle.Session) error { return s.Close(t.Context()) },
		"store":   func(st *lifecycle.Store, _ *lifecycle.Session) error { return st.Close(t.Context()) },
	} {
		own := storeIn(t, filepath.Dir(store.Path()))
		sess := create(t, own, "auth")
		require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(3)))
		require.NoError(t, end(own, sess), name)

		shown, _, err := store.Read(sess.ID())
		require.NoError(t, err)
		require.Equal(t, session.StatusPaused, shown.Status(), name)
		again, err := store.Open(sess.ID())
		require.NoError(t, err)
		h := again.State().Header()
		require.Equal(t, session.ExitPaused, h.ExitReason, name)
		require.Equal(t, 3, h.TurnCount, name)
		require.NoError(t, again.Close(t.Context()))
	}
}

// A session that was found crashed stays crashed after a command opened it for a moment:
// such a command has not resumed it.
func TestCloseOfACrashedSessionLeavesItCrashed(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	holder := start(t, "hold", filepath.Dir(store.Path()))
	id, err := session.ParseID(holder.line(t))
	require.NoError(t, err)
	require.NoError(t, holder.Process.Kill())
	_ = holder.Wait()
	left, _, err := store.Read(id)
	require.NoError(t, err)
	for range 2 {
		sess, err := store.Open(id)
		require.NoError(t, err)
		h := sess.State().Header()
		require.Equal(t, session.ExitCrashed, h.ExitReason)
		require.Equal(t, left.Header().UpdatedAt, h.UpdatedAt, "a look is no activity")
		require.NoError(t, sess.Close(t.Context()))
	}
	sess, err := store.Open(id)
	require.NoError(t, err)
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(99)))
	require.NoError(t, sess.Close(t.Context()))
	again, err := store.Open(id)
	require.NoError(t, err)
	require.Equal(t, session.ExitPaused, again.State().Header().ExitReason, "it was resumed, and closed")
	require.NoError(t, again.Close(t.Context()))
}

// What compresses an output uses the store's folder, and the process ends after Close.
func TestCloseWaitsForOutputs(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"session", "store", "store, behind a session that did not wait"} {
		synctest.Test(t, func(t *testing.T) {
			disk := crashfs.New(crashfs.Ext4)
			o := simOptions
			o.Policy.Compression = codec.Options{Codec: "gzip", Threshold: 1}
			store, err := lifecycle.InitOn(disk.FS(), o)
			require.NoError(t, err)
			sess, err := store.Create(t.Context(), "sim")
			require.NoError(t, err)
			release := make(chan struct{})
			disk.SetHook(func(op crashfs.Op) crashfs.Fault {
				if strings.HasSuffix(op.Name, ".log.gz") {
					<-release
				}
				return crashfs.Fault{}
			})
			out, err := sess.Output(1, output.Attempt{Task: "t"})
			require.NoError(t, err)
			_, err = out.Stream(output.Log, "").Write([]byte(strings.Repeat("a line of output\n", 100)))
			require.NoError(t, err)
			require.NoError(t, out.Close(record.Failed, "", true))
			end, ended := sess.Close, make(chan error, 1)
			if who != "session" {
				end = store.Close
			}
			if who == "store, behind a session that did not wait" {
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				_ = sess.Close(gone)
				synctest.Wait() // what is durable is, and the outputs are not compressed
			}
			go func() { ended <- end(t.Context()) }()
			synctest.Wait()
			require.Empty(t, ended, who)
			close(release)
			require.NoError(t, errors.Join(<-ended, store.Close(t.Context())))
		})
	}
}
