//go:build unix && !linux

package process

import (
	"errors"
	"io/fs"
	"syscall"
)

func groupExists(pgid int) bool {
	err := syscall.Kill(-pgid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// groupHolds is not known: it takes /proc to see what another process has open.
func groupHolds(int, fs.FileInfo, string) answer { return unknown }
func holders(fs.FileInfo) []Stray                { return nil }

func strays(fs.FileInfo, Group) (ours, others []Stray) { return nil, nil }

func keeper(Stray, int) bool { return false }

// Above returns nothing: the system does not tell who holds a lock.
func Above(string) []Held { return nil }
