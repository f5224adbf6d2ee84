package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

const (
	// MaxText bounds the text of an answer, in bytes.
	MaxText = 24 << 10
	// MaxData bounds the data of an answer as JSON, in bytes.
	MaxData = 40 << 10
	// maxError bounds the text of an error, in bytes.
	maxError = 4 << 10
	// lastTime is how long the end waits for a tool that still runs and for a client that does not
	// read.
	lastTime = 2 * time.Second
)

// An Answer is what a tool found. Both show the client what is not visible as escape sequences, and Text is a block
// of code where something in it would be a link or an image in Markdown.
type Answer struct {
	Text string // for a reader, with what to do next
	Data any    // an object, with its struct tags
}

// Encode returns the data of an answer, or a part of it, as JSON.
func Encode(data any) ([]byte, error) {
	text, err := strictjson.MarshalShown(data)
	return plain.Values(text), err
}

// Serve serves a client until in ends or ctx is cancelled. It closes in, and then writes no more.
// The error is why in could not be read or out not be written.
func Serve(ctx context.Context, in io.ReadCloser, out io.Writer, version string, src Source) error {
	c := newConn(in, out)
	s := newServer(version, src)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, c) }()
	var err error
	select {
	case err = <-ended:
		_ = c.Close()
	case <-ctx.Done():
		_ = c.Close()
		late := time.NewTimer(lastTime)
		defer late.Stop()
		select {
		case err = <-ended:
		case <-late.C:
		}
	}
	if ctx.Err() != nil {
		return nil // as asked
	}
	return err
}

// newServer returns a server with all tools.
func newServer(version string, src Source) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "lopen", Title: "Lopen", Version: version}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	turn := make(chan struct{}, 1)
	add(s, turn, "search", searchHelp, src.Search)
	add(s, turn, "session_log", sessionLogHelp, src.SessionLog)
	add(s, turn, "changes_since", changesSinceHelp, src.ChangesSince)
	add(s, turn, "last_failure", lastFailureHelp, src.LastFailure)
	return s
}

// add adds a tool that only reads. A call is cancelled by the client, and by the end of the connection.
func add[In any](s *sdk.Server, turn chan struct{}, name, help string, fn func(context.Context, In) (Answer, error)) {
	no := false
	tool := &sdk.Tool{Name: name, Description: help, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}}
	sdk.AddTool(s, tool, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		answer, err := fn(ctx, in)
		if err != nil {
			return nil, nil, errors.New(plain.Told(clip(strings.TrimSpace(err.Error()), maxError)))
		}
		data, err := Encode(answer.Data)
		if err != nil {
			return nil, nil, err
		}
		if len(data) > MaxData {
			return nil, nil, fmt.Errorf("the answer has %d bytes, more than %d: ask for less of it", len(data), MaxData)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: plain.Told(clip(answer.Text, MaxText))}}}, strictjson.Value(data), nil
	})
}
