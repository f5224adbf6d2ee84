package checkpoint

import (
	"context"
	"io"
)

// inContext reads until its context ends.
type inContext struct {
	ctx context.Context //nolint:containedctx // it is that of the one call that reads
	r   io.Reader
}

func (r inContext) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
