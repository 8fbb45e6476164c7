package kubectl

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/etcdshift/etcdshift/internal/render"
)

// output is a buffered output that escapes terminal control characters. Its writes fail once ctx
// has ended, so that a command that still prints stops.
type output struct {
	ctx      context.Context
	terminal bool
	buffer   *bufio.Writer
	escaped  io.WriteCloser
	to       io.Writer // one of these two
}

func newOutput(ctx context.Context, w io.Writer) *output {
	buffer := bufio.NewWriter(w)
	escaped := render.NewEscaper(buffer)
	return &output{ctx, render.IsTerminal(w), buffer, escaped, escaped}
}

// begin is told the format of a command. Documents for programs stay as they are, unless a terminal
// shows them; JSON and YAML escape most control characters themselves.
func (o *output) begin(format string) {
	if !o.terminal && isDocument(format) {
		o.to = o.buffer
	}
}

// isDocument reports whether programs read a format.
func isDocument(format string) bool {
	return slices.Contains([]string{"json", "yaml", "kyaml", "jsonpath-as-json"}, format)
}

func (o *output) Write(p []byte) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	return o.to.Write(p)
}

// complete writes what is left.
func (o *output) complete() error { return cmp.Or(o.escaped.Close(), o.buffer.Flush()) }
