package search

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/cache/sqlite"
	"github.com/lopen-dev/lopen/writer"
)

// errNoRoom says that an index is not written because the disk has too little room.
var errNoRoom = errors.New("there is no room for it")

// tooLittle begins the name of an empty file that ends with the free bytes in which an index had no room. Without it
// each search would fill the disk and give it back.
const tooLittle = "no-room-"

// room returns an error if an index is not to be written: too little is free, or hardly more than what was
// too little.
func (ix *Index) room() error {
	if err := sqlite.Room(ix.dir); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	free, err := writer.FreeBytes(ix.dir)
	if err != nil {
		return nil //nolint:nilerr // a full disk is found while writing
	}
	for _, name := range ix.notes() {
		before, err := strconv.ParseUint(strings.TrimPrefix(name, tooLittle), 10, 64)
		if err == nil && free < before+before/8 {
			return fmt.Errorf("%w: %d MiB are free, and %d MiB were too little", errNoRoom, free>>20, before>>20)
		}
	}
	return nil
}

// notes returns the names of the files that say how much was too little.
func (ix *Index) notes() (names []string) {
	entries, _ := os.ReadDir(ix.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tooLittle) {
			names = append(names, e.Name())
		}
	}
	return names
}

// giveBack removes an index that found no room, and notes how much was too little.
func (ix *Index) giveBack() {
	_ = ix.drop()
	n, others, _ := ix.newest()
	if newest := name(n); filepath.Join(ix.dir, newest) == ix.file { // there is no room for the empty file of the next one
		others = append(others, newest+"-wal", newest+"-shm", newest)
	}
	ix.remove(append(others, ix.notes()...))
	if free, err := writer.FreeBytes(ix.dir); err == nil {
		f, err := os.OpenFile(filepath.Join(ix.dir, tooLittle+strconv.FormatUint(free, 10)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil { // else it is tried again
			_ = f.Close()
		}
	}
}

// remove removes files of the index. What stays is removed the next time.
func (ix *Index) remove(names []string) {
	for _, name := range names {
		_ = os.Remove(filepath.Join(ix.dir, name))
	}
}
