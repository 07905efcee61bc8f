package load

import (
	"context"
	"io"
	"net"
)

// Sink takes what clients send and throws it away: beside it others see what a load costs that comes from the cores they share with it, and
// nothing else.
type Sink struct{ Addr string }

// Run returns when ctx is done.
func (s Sink) Run(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.Addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			_, _ = io.Copy(io.Discard, onlyReader{conn})
		}()
	}
}

// onlyReader hides what a connection does otherwise than by Read.
type onlyReader struct{ io.Reader }
