package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

const (
	// maxMessage bounds one message of a client, in bytes.
	maxMessage = 1 << 20
	// maxNotification bounds a notification: the SDK queues those without a limit of its own.
	maxNotification = 4 << 10
	// maxPending bounds the requests that wait for their answers.
	maxPending = 16
)

var errTooLong = errors.New("the message has more bytes than this server takes")

// A conn is one client: a line a message. The SDK's own ends with the first line that is no
// message, and loses the answers that are not written yet when stdin ends.
type conn struct {
	in     io.ReadCloser
	lines  chan line
	closed chan struct{}
	close  sync.Once
	slots  chan struct{} // one is taken while a request waits for its answer

	mu      sync.Mutex // held while something is written
	out     io.Writer  // Guarded by mu.
	pending map[jsonrpc.ID]bool
}

// A line is what the client sent, without its end, or why it could not be read.
type line struct {
	data []byte
	err  error
}

func newConn(in io.ReadCloser, out io.Writer) *conn {
	return &conn{in: in, out: out, lines: make(chan line), closed: make(chan struct{}), slots: make(chan struct{}, maxPending), pending: map[jsonrpc.ID]bool{}}
}

// Connect starts to read. It is the SDK's Transport.
func (c *conn) Connect(context.Context) (sdk.Connection, error) {
	go c.readLines()
	return c, nil
}

// SessionID is for transports that have several sessions.
func (c *conn) SessionID() string { return "" }

// Close ends the reading, and may be called several times.
func (c *conn) Close() (err error) {
	c.close.Do(func() {
		close(c.closed)
		err = c.in.Close()
	})
	return err
}

// readLines hands each line on until there are no more.
func (c *conn) readLines() {
	r := bufio.NewReaderSize(c.in, 64<<10)
	for {
		l := readLine(r)
		select {
		case c.lines <- l:
		case <-c.closed:
			return
		}
		if l.err != nil && !errors.Is(l.err, errTooLong) {
			return
		}
	}
}

// readLine reads a line. Of one that is too long only the bound is in memory.
func readLine(r *bufio.Reader) line {
	var data []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(data)+len(part) > maxMessage; long {
			data = nil
		} else {
			data = append(data, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return line{err: errTooLong}
		case err != nil && len(bytes.TrimSpace(data)) == 0:
			return line{err: err}
		default: // the error of a line without an end comes back
			return line{data: bytes.TrimSpace(data)}
		}
	}
}

// Read returns the next message that is one. At the end it waits for the answers that are not
// written yet.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case l := <-c.lines:
			var msg jsonrpc.Message
			var err error
			switch {
			case errors.Is(l.err, errTooLong):
				err = c.refuse(nil, jsonrpc.CodeInvalidRequest, l.err)
			case l.err != nil:
				c.drain(ctx)
				return nil, l.err
			default:
				msg, err = c.accept(ctx, l.data)
			}
			if msg != nil || err != nil {
				return msg, err
			}
		}
	}
}

// drain waits until each request is answered.
func (c *conn) drain(ctx context.Context) {
	for range maxPending {
		if !c.wait(ctx) {
			return
		}
	}
}

// wait takes a slot.
func (c *conn) wait(ctx context.Context) bool {
	select {
	case c.slots <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-c.closed:
	}
	return false
}

// accept returns the message of a line. A line that has none is answered here, and nil.
func (c *conn) accept(ctx context.Context, data []byte) (jsonrpc.Message, error) {
	if len(data) == 0 {
		return nil, nil
	}
	if err := strictjson.Check(data); err != nil {
		return nil, c.refuse(nil, jsonrpc.CodeParseError, err)
	}
	if data[0] == '[' {
		return nil, c.refuse(nil, jsonrpc.CodeInvalidRequest, errors.New("batches are not supported: send one message a line"))
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil, c.refuse(idOf(data), jsonrpc.CodeInvalidRequest, err)
	}
	req, ok := msg.(*jsonrpc.Request)
	switch {
	case !ok: // an answer; this server asks nothing
		return nil, nil
	case !req.IsCall():
		known := req.Method == "notifications/initialized" || req.Method == "notifications/cancelled"
		if !known || len(data) > maxNotification {
			return nil, nil
		}
		return msg, nil
	}
	if !c.wait(ctx) {
		return nil, io.EOF
	}
	c.mu.Lock()
	twice := c.pending[req.ID]
	c.pending[req.ID] = true
	c.mu.Unlock()
	if twice {
		<-c.slots
		return nil, c.refuse(idOf(data), jsonrpc.CodeInvalidRequest, errors.New("a request with this id is not answered yet"))
	}
	return msg, nil
}

// idOf is the id of what is no request, nil where it has none that can be one.
func idOf(data []byte) strictjson.Value {
	var m struct {
		ID strictjson.Value `json:"id"`
	}
	if strictjson.UnmarshalForeign(data, &m) != nil || len(m.ID) == 0 || m.ID[0] == '{' || m.ID[0] == '[' {
		return nil
	}
	return m.ID
}

// refuse answers what the SDK does not get to see.
func (c *conn) refuse(id strictjson.Value, code int, why error) error {
	if id == nil {
		id = strictjson.Value("null")
	}
	var m struct {
		Version string           `json:"jsonrpc"`
		ID      strictjson.Value `json:"id"`
		Error   struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	m.Version, m.ID, m.Error.Code, m.Error.Message = "2.0", id, code, clip(plain.Line(why.Error()), maxError)
	data, err := strictjson.MarshalShown(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.out.Write(append(data, '\n'))
	return err
}

// Write writes a message, as one piece.
func (c *conn) Write(_ context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := msg.(*jsonrpc.Response); ok && c.pending[answer.ID] {
		delete(c.pending, answer.ID)
		defer func() { <-c.slots }()
	}
	_, err = c.out.Write(append(data, '\n'))
	return err
}
