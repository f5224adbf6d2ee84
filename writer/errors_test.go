package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/envelope"
)

func TestClassOf(t *testing.T) {
	t.Parallel()
	for class, errnos := range map[Class][]syscall.Errno{
		ClassNoSpace:   {syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG},
		ClassDenied:    {syscall.EACCES, syscall.EPERM, syscall.EROFS},
		ClassTransient: {syscall.EINTR, syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM},
		ClassDevice:    {syscall.EIO, syscall.ESTALE, syscall.ENXIO, syscall.ENODEV, syscall.ETIMEDOUT, syscall.ENOTCONN},
		ClassInvalid:   {syscall.EINVAL, syscall.ENAMETOOLONG, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP},
		classUnknown:   {syscall.ENOENT, syscall.EEXIST, syscall.EXDEV},
	} {
		for _, errno := range errnos {
			for _, err := range []error{
				errno,
				&fs.PathError{Op: "write", Path: "x", Err: errno},
				&os.LinkError{Op: "rename", Old: "x", New: "y", Err: errno},
				os.NewSyscallError("fsync", errno),
				fmt.Errorf("save: %w", NewError("replace", "/x", NotCommitted, errno)),
				&Error{Err: &fs.PathError{Err: errno}}, // an Error without a class
			} {
				require.Equal(t, class, ClassOf(err), "%v (%T)", errno, err)
			}
		}
	}
	for _, c := range []struct {
		err   error
		class Class
	}{
		{nil, classUnknown},
		{io.ErrShortWrite, classUnknown},
		{fs.ErrPermission, ClassDenied},
		{context.DeadlineExceeded, ClassTransient},
		{context.Canceled, classUnknown},
		{&BusyError{}, ClassBusy},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, &BusyError{}), ClassBusy},
		{&Error{Class: ClassFenced, Err: syscall.ENOSPC}, ClassFenced},
		{&Error{Class: ClassCorrupt, Err: &Error{Class: ClassDevice}}, ClassCorrupt},
	} {
		require.Equal(t, c.class, ClassOf(c.err), "%v", c.err)
	}
}

// Each class matches its own sentinel and no other.
func TestErrorIs(t *testing.T) {
	t.Parallel()
	all := map[Class]error{
		ClassInvalid: ErrInvalid, ClassBusy: ErrBusy,
		ClassCorrupt: envelope.ErrCorrupt, ClassFutureVersion: envelope.ErrFutureVersion,
	}
	for class := classUnknown; int(class) < len(classNames); class++ {
		err := fmt.Errorf("save: %w", &Error{Op: "replace", Path: "/x", Class: class, Err: io.ErrShortWrite})
		for c, sentinel := range all {
			require.Equal(t, c == class, errors.Is(err, sentinel), "%v, %v", class, sentinel)
		}
		require.ErrorIs(t, err, io.ErrShortWrite)
		require.NotEmpty(t, class.Hint())
		require.Equal(t, class == classUnknown, class.Hint() == classUnknown.Hint(), "%v has no hint of its own", class)
		require.NotContains(t, class.Hint(), "by itself", "only a run that waits can promise that")
		require.NotContains(t, class.String(), "class ")
	}
	require.Equal(t, "class 200", Class(200).String())
	require.ErrorIs(t, &BusyError{}, ErrBusy)
	require.NotErrorIs(t, &BusyError{}, ErrInvalid)
	require.NotPanics(t, func() { _ = errors.Is(&Error{Err: io.EOF}, unhashable{}) })
}

type unhashable []int

func (unhashable) Error() string { return "unhashable" }

func TestErrorMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  *Error
		want string
	}{
		{NewError("replace", "/a/b", NotCommitted, &fs.PathError{Op: "write", Path: "b", Err: syscall.ENOSPC}), "replace /a/b: write: " + syscall.ENOSPC.Error()},
		{NewError("replace", "/a/b", NotDurable, &fs.PathError{Op: "sync", Path: ".", Err: syscall.EIO}), "replace /a/b: sync: " + syscall.EIO.Error() + " (written, but a power cut may undo it)"},
		{NewError("replace", "/a/b", OutcomeUnknown, &os.LinkError{Op: "rename", Old: "t", New: "b", Err: syscall.EIO}), "replace /a/b: rename: " + syscall.EIO.Error() + " (whether it was written cannot be told)"},
		{NewError("read", "/a/b", NotCommitted, &Error{Class: ClassCorrupt, Err: errors.New("it ends too early")}), "read /a/b: it ends too early"},
		{NewError("lock", "/a/b", NotCommitted, fmt.Errorf("again: %w", &fs.PathError{Op: "open", Path: "b", Err: syscall.EMFILE})), "lock /a/b: again: open: " + syscall.EMFILE.Error()},
	} {
		require.Equal(t, c.want, c.err.Error())
	}
}

func TestOpenFS(t *testing.T) {
	t.Parallel()
	base := openTemp(t)
	_, err := OpenFS(base.Name() + "/missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "open folder "+base.Name())
	put(t, base, "file", oldContent)
	_, err = OpenFS(base.Name() + "/file")
	require.ErrorIs(t, err, ErrInvalid)
}
