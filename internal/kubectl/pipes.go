package kubectl

import (
	"context"
	"net"
)

// pipes is a listener for connections within this process. It ends with its context.
type pipes struct {
	ctx   context.Context
	conns chan net.Conn
}

func newPipes(ctx context.Context) *pipes { return &pipes{ctx, make(chan net.Conn)} }

// DialContext connects to the listener.
func (p *pipes) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

// Accept waits for a connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close does nothing.
func (p *pipes) Close() error { return nil }

// Addr returns an address that is never shown.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Net: "pipe"} }
