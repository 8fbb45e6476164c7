package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiVersion is that of every JSON document printed.
const apiVersion = "etcdshift/v1"

// outputFlag is -o, with the formats a command knows; the first is the default.
func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "print `FORMAT`: text or json"}
}

func quietFlag() cli.Flag {
	return &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing on stderr but errors"}
}

// wantsJSON reads -o.
func wantsJSON(c *cli.Context) (bool, error) {
	format, err := oneOf(c, "output", "text", "json")
	return format == "json", err
}

// oneOf returns the value of a flag that takes one of some words.
func oneOf(c *cli.Context, flag string, words ...string) (string, error) {
	value := c.String(flag)
	if !slices.Contains(words, value) {
		return "", usagef(commandPath(c), "--%s is %q; it takes %s", flag, value, strings.Join(words, " or "))
	}
	return value, nil
}

// printJSON prints one document.
func printJSON(w io.Writer, document any) error {
	text, err := encodeJSON(document, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// table prints rows in columns.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer) table {
	return table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
}

func (t table) row(cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, tableCell(fmt.Sprint(cell)))
	}
	fmt.Fprintln(t.w)
}

// flush prints the table; its error is that of any row.
func (t table) flush() error { return t.w.Flush() }

// printable is s as a terminal may get it: a hostile key or name must not move the cursor.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(s)
	}
	return s
}

// maxCell bounds a cell of a table, in bytes: every row is as wide as the longest cell. maxRow
// bounds the cells of a row together.
const (
	maxCell = 4096
	maxRow  = 64 << 10
)

// tableCell is s as a cell of a table: printable, and cut with "..." at its end where it is longer than anyone reads.
func tableCell(s string) string { return cellOf(s, 1) }

// cellOf is s as a cell of a table of so many columns.
func cellOf(s string, columns int) string {
	if most := min(maxCell, maxRow/columns); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return printable(s)
}

// printableColumns are columns with names that a terminal may get: a CustomResourceDefinition has any.
func printableColumns(columns []metav1.TableColumnDefinition) []metav1.TableColumnDefinition {
	out := slices.Clone(columns)
	for i := range out {
		out[i].Name = cellOf(out[i].Name, len(out))
	}
	return out
}

// warn prints warnings on stderr unless -q was given.
func warn(c *cli.Context, warnings []string) {
	if c.Bool("quiet") {
		return
	}
	for _, w := range warnings {
		fmt.Fprintln(c.App.ErrWriter, "warning:", printable(w))
	}
}

// size is a number of bytes, and for large ones how people say it.
func size(bytes int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if bytes < 1<<10 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	n, unit := float64(bytes)/1024, 0
	for n >= 1024 && unit < len(units)-1 {
		n, unit = n/1024, unit+1
	}
	return fmt.Sprintf("%d bytes (%.1f %s)", bytes, n, units[unit])
}
