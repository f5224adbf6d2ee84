//go:build !unix

package process

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Without flock on inherited descriptors an orphan cannot be seen: the lock is
// never found held.
func flockShared(*os.File) (bool, error)    { return true, nil }
func unlock(*os.File) error                 { return nil }
func tryFlock(*os.File) (bool, error)       { return true, nil }
func groupExists(int) bool                  { return false }
func signalGroup(int, syscall.Signal) error { return errors.ErrUnsupported }
func ours(int) bool                         { return false }

func groupHolds(int, fs.FileInfo, string) answer { return unknown }
func holders(fs.FileInfo) []Stray                { return nil }

func strays(fs.FileInfo, Group) (ours, others []Stray) { return nil, nil }

func keeper(Stray, int) bool { return false }

// Above returns nothing: the system does not tell who holds a lock.
func Above(string) []Held { return nil }
