package main

import (
	"cmp"
	"context"
	"io"
)

// await returns what fn returns, or the error of ctx as soon as that ends: fn may wait for the
// other end of a pipe for ever. It is left alone then, and touches nothing that others use.
func await[T any](ctx context.Context, fn func() (T, error)) (v T, err error) {
	if ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	type result struct {
		v   T
		err error
	}
	ended := make(chan result, 1)
	go func() {
		v, err := fn()
		ended <- result{v, err}
	}()
	select {
	case r := <-ended:
		return r.v, r.err
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}

// A pipe is read or written until its context ends.
type pipe struct {
	ctx  context.Context //nolint:containedctx // it is that of the one command
	name string
	r    io.Reader
	w    io.Writer
	room [64 << 10]byte // of the call that runs, also when nobody waits for it any longer
}

// Name is for messages.
func (p *pipe) Name() string { return p.name }

func (p *pipe) Read(b []byte) (int, error) {
	room := p.room[:min(len(b), len(p.room))]
	n, err := await(p.ctx, func() (int, error) { return p.r.Read(room) })
	return copy(b, room[:n]), err
}

func (p *pipe) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil && p.ctx.Err() == nil {
		room := p.room[:copy(p.room[:], b[n:])]
		var m int
		m, err = await(p.ctx, func() (int, error) { return p.w.Write(room) })
		n += m
	}
	return n, cmp.Or(err, context.Cause(p.ctx))
}
