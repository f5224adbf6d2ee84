package main

import (
	"cmp"
	"context"
	"io"
	"time"
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

// moment is how long what is interrupted may take to end by itself, and to remove what it has made.
const moment = time.Second

// awaitEnd is await for a function that ends when ctx does, unless a call of the system does not return.
func awaitEnd[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(moment, cancel) })
	defer stop()
	return await(patient, fn)
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
