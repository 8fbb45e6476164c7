package kubectl

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/render"
)

// output is a buffered output that escapes terminal control characters. Writes fail once ctx has
// ended, so that a printing command stops.
type output struct {
	ctx      context.Context
	terminal bool
	buffer   *bufio.Writer
	escaped  io.WriteCloser
	to       io.Writer // buffer or escaped
	picks    bool      // the format selects fields
	hidden   bool      // a selected field was redacted
}

func newOutput(ctx context.Context, w io.Writer) *output {
	buffer := bufio.NewWriter(w)
	escaped := render.NewEscaper(buffer)
	return &output{ctx: ctx, terminal: render.IsTerminal(w), buffer: buffer, escaped: escaped, to: escaped}
}

// begin sets the format of a command. Documents for programs stay unchanged unless written to a
// terminal; JSON and YAML escape most control characters themselves.
func (o *output) begin(format string) {
	o.picks = strings.Contains(format, "path") || strings.Contains(format, "template") ||
		strings.HasPrefix(format, "custom-columns")
	if !o.terminal && isDocument(format) {
		o.to = o.buffer
	}
}

// isDocument reports whether a format is for programs.
func isDocument(format string) bool {
	return slices.Contains([]string{"json", "yaml", "kyaml", "jsonpath-as-json"}, format)
}

func (o *output) Write(p []byte) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	o.hidden = o.hidden || o.picks && (bytes.Contains(p, []byte("<redacted")) ||
		bytes.Contains(p, []byte("PHJlZGFjdGVk"))) // in base64
	return o.to.Write(p)
}

// complete flushes the output.
func (o *output) complete() error { return cmp.Or(o.escaped.Close(), o.buffer.Flush()) }
