package render

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxCell and maxRow bound the bytes of a cell and a row: all rows are as wide as the longest.
const (
	maxCell = 4096
	maxRow  = 64 << 10
)

// Cell returns s for a table with so many columns: printable, and cut with "..." if too long.
func Cell(s string, columns int) string {
	if most := min(maxCell, maxRow/columns); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return Printable(s)
}

// Columns returns columns with printable names: a CustomResourceDefinition has any.
func Columns(columns []metav1.TableColumnDefinition) []metav1.TableColumnDefinition {
	out := slices.Clone(columns)
	for i := range out {
		out[i].Name = Cell(out[i].Name, len(out))
	}
	return out
}

// Plural returns a number and a noun.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Are returns Plural behind its verb: "is 1 key", "are 2 keys".
func Are(n int, what string) string {
	if n == 1 {
		return "is " + Plural(n, what)
	}
	return "are " + Plural(n, what)
}

// Size returns a number of bytes, and a large one in a binary unit too.
func Size(bytes int64) string {
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
