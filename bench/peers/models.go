package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/gofrs/flock"

	"github.com/lopen-dev/lopen/bench/workload"
)

// mailbox is how many states wait for the channel's goroutine before Save blocks.
const mailbox = 256

// channel hands every state to one goroutine, which locks a file, replaces the state
// by a rename, and unlocks, once for each state. The caller marshals: the document is
// its own and changes while a state waits.
type channel struct {
	doc    *document
	states chan order
	done   chan error
}

// order is a state to be written, or a wait for those before it.
type order struct {
	data    []byte
	written chan struct{} // closed when it is this order's turn; nil for a state
}

func openChannel(dir string, n int) (Peer, error) {
	c := &channel{doc: newDocument(n), states: make(chan order, mailbox), done: make(chan error, 1)}
	go c.run(stateFile(dir), flock.New(stateFile(dir)+".lock"))
	return c, c.hand()
}

func (c *channel) run(path string, lock *flock.Flock) {
	var all error
	for o := range c.states {
		if o.written != nil {
			close(o.written)
			continue
		}
		err := lock.Lock()
		if err == nil {
			err = errors.Join(writeRename(path, o.data), lock.Unlock())
		}
		all = errors.Join(all, err)
	}
	c.done <- all
}

func (c *channel) hand() error {
	data, err := json.Marshal(c.doc)
	if err != nil {
		return err
	}
	c.states <- order{data: data}
	return nil
}

func (c *channel) Save(s workload.Step) error {
	c.doc.apply(s)
	return c.hand()
}

func (c *channel) Sync() error {
	o := order{written: make(chan struct{})}
	c.states <- o
	<-o.written
	return nil
}

func (c *channel) Close() error {
	close(c.states)
	return <-c.done
}

// openCopy keeps a copy of the file as it is before it writes into it.
var openCopy = openWhole(func(path string, data []byte) error {
	if err := copyFile(path, path+".bak"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, data, 0o600)
})

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
