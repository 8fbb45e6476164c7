package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// newKeyPrinter makes the printer of a format.
func newKeyPrinter(c *cli.Context, o *opened, format string, layouts keys.Layouts) (keyPrinter, error) {
	w := bufio.NewWriterSize(c.App.Writer, 1<<16)
	switch format {
	case "name":
		return nameKeys{w}, nil
	case "jsonl":
		return jsonKeys{w}, nil
	case "json":
		return newKeyList(c, o, layouts)
	}
	return newKeyTable(w, layouts, format == "wide", c.Bool("history")), nil
}

// nameKeys prints the keys alone.
type nameKeys struct{ *bufio.Writer }

func (p nameKeys) print(s *inspect.Stored) error {
	_, err := fmt.Fprintln(p, printable(s.Key))
	return err
}
func (p nameKeys) end() error { return p.Flush() }

// jsonKeys prints one key a line.
type jsonKeys struct{ *bufio.Writer }

func (p jsonKeys) print(s *inspect.Stored) error { return printJSONLine(p, s) }
func (p jsonKeys) end() error                    { return p.Flush() }

// keyList prints one document, key by key.
type keyList struct {
	stream *jsonStream
	counts struct {
		Keys    int `json:"count"`
		Unknown int `json:"unknown"`
	}
}

// newKeyList prints what stands before the first key.
func newKeyList(c *cli.Context, o *opened, layouts keys.Layouts) (*keyList, error) {
	in, err := o.input(c.Context)
	if err != nil && !errors.Is(err, snapshot.ErrDigest) {
		return nil, err
	}
	p := &keyList{stream: newJSONStream(c.App.Writer)}
	return p, p.stream.begin(struct {
		documentHead
		Flavour  keys.Flavour   `json:"flavour"`
		Prefixes []keys.Storage `json:"prefixes"`
	}{document("KeyList", in), layouts.Flavour(), append([]keys.Storage{}, layouts.Storages()...)}, "keys")
}

func (p *keyList) print(s *inspect.Stored) error {
	if p.counts.Keys++; s.Unknown != "" {
		p.counts.Unknown++
	}
	return p.stream.element(s)
}

func (p *keyList) Flush() error { return p.stream.w.Flush() }
func (p *keyList) end() error   { return p.stream.end(p.counts) }

// keyTable prints rows in columns that are as wide as the first rows need, and wider from where a later one needs more.
type keyTable struct {
	w       *bufio.Writer
	columns []keyColumn
	widths  []int
	waiting [][]string
	held    int // bytes that wait
	sized   bool
}

// keyColumn is a column of the table.
type keyColumn struct {
	head string
	cell func(*inspect.Stored) string
}

const (
	firstRows  = 500     // that the widths are taken from
	firstBytes = 1 << 20 // of them
	mostWidth  = 100     // that a column gets, whatever a hostile key has in it
)

func newKeyTable(w *bufio.Writer, layouts keys.Layouts, wide, history bool) *keyTable {
	t := &keyTable{w: w, columns: keyColumns(layouts, wide, history)}
	t.widths = make([]int, len(t.columns))
	var head []string
	for _, c := range t.columns {
		head = append(head, c.head)
	}
	t.waiting = [][]string{head}
	return t
}

func keyColumns(layouts keys.Layouts, wide, history bool) []keyColumn {
	has := func(is func(keys.Flavour) bool) bool {
		return slices.ContainsFunc(layouts.Storages(), func(s keys.Storage) bool { return is(s.Flavour) })
	}
	var all []keyColumn
	add := func(when bool, head string, cell func(*inspect.Stored) string) {
		if when {
			all = append(all, keyColumn{head, cell})
		}
	}
	add(wide, "PREFIX", func(s *inspect.Stored) string {
		if s.Prefix == nil {
			return ""
		}
		return *s.Prefix + "/"
	})
	add(true, "RESOURCE", func(s *inspect.Stored) string {
		switch {
		case s.Unknown != "":
			return "?"
		case s.Group == "":
			return s.Resource
		}
		return s.Resource + "." + s.Group
	})
	kcp := has(keys.Flavour.KCP)
	add(kcp && wide, "IDENTITY", func(s *inspect.Stored) string {
		if s.Custom {
			return "customresources"
		}
		return s.Identity
	})
	add(has(func(f keys.Flavour) bool { return f == keys.FlavourKCPCache }), "SHARD", func(s *inspect.Stored) string { return s.Shard })
	add(kcp, "CLUSTER", func(s *inspect.Stored) string { return s.Cluster })
	add(true, "NAMESPACE", func(s *inspect.Stored) string { return s.Namespace })
	add(true, "NAME", func(s *inspect.Stored) string {
		if s.Unknown != "" {
			return s.Key
		}
		return s.Name
	})
	add(history, "STATE", func(s *inspect.Stored) string { return string(s.State) })
	add(true, "REVISION", revision)
	add(wide, "CREATED", func(s *inspect.Stored) string { return number(s.CreateRevision) })
	add(true, "VERSION", func(s *inspect.Stored) string { return number(s.Version) })
	add(true, "LEASE", func(s *inspect.Stored) string { return s.Lease })
	add(true, "BYTES", func(s *inspect.Stored) string { return fmt.Sprint(s.Bytes) })
	add(true, "ENCODING", encodingOf)
	add(wide, "KEY", func(s *inspect.Stored) string { return s.Key })
	return all
}

// revision is that of a record, with its place in the transaction where it is not the first.
func revision(s *inspect.Stored) string {
	if s.Sub == 0 {
		return fmt.Sprint(s.Revision)
	}
	return fmt.Sprintf("%d.%d", s.Revision, s.Sub)
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// encodingOf says how a value is written, and by what it is encrypted.
func encodingOf(s *inspect.Stored) string {
	switch {
	case s.Encryption == "":
		return s.Encoding
	case s.Encoding == "encrypted":
		return s.Encryption
	}
	return s.Encryption + " " + s.Encoding
}

func (t *keyTable) print(s *inspect.Stored) error {
	row := make([]string, len(t.columns))
	for i, c := range t.columns {
		if row[i] = printable(c.cell(s)); row[i] == "" {
			row[i] = "-"
		}
		t.held += len(row[i])
	}
	if t.sized {
		return t.row(row)
	}
	if t.waiting = append(t.waiting, row); len(t.waiting) > firstRows || t.held > firstBytes {
		return t.size()
	}
	return nil
}

// size prints what waited for the widths of all its columns.
func (t *keyTable) size() error {
	t.sized = true
	for _, row := range t.waiting {
		t.widen(row)
	}
	for _, row := range t.waiting {
		if err := t.row(row); err != nil {
			return err
		}
	}
	t.waiting = nil
	return nil
}

func (t *keyTable) widen(row []string) {
	for i, cell := range row {
		t.widths[i] = max(t.widths[i], min(utf8.RuneCountInString(cell), mostWidth))
	}
}

func (t *keyTable) row(row []string) error {
	t.widen(row)
	for i, cell := range row {
		if i < len(row)-1 {
			cell += strings.Repeat(" ", max(0, t.widths[i]-utf8.RuneCountInString(cell))+2)
		}
		if _, err := io.WriteString(t.w, cell); err != nil {
			return err
		}
	}
	return t.w.WriteByte('\n')
}

// Flush prints what waits.
func (t *keyTable) Flush() error {
	if err := t.size(); err != nil {
		return err
	}
	return t.w.Flush()
}

func (t *keyTable) end() error { return t.Flush() }
