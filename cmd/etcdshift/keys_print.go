package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/keys"
)

// keyPrinter prints keys one by one. flush ends it after an error, else end.
type keyPrinter struct {
	add        func(*inspect.Stored) error
	flush, end func() error
}

func newKeyPrinter(c *cli.Context, o *opened, layouts keys.Layouts) (keyPrinter, error) {
	switch format := c.String("output"); format {
	case "name":
		p := render.NewPage(c.App.Writer)
		add := func(s *inspect.Stored) error {
			_, err := fmt.Fprintln(p, render.Printable(s.Key))
			return err
		}
		return keyPrinter{add, p.Flush, p.Flush}, nil
	case "json", "jsonl":
		return newKeyList(c, o, format, layouts)
	}
	columns := keyColumns(layouts, c.String("output") == "wide", c.Bool("history"))
	t := render.NewFlow(c.App.Writer, mapped(columns, func(k keyColumn) string { return k.head })...)
	add := func(s *inspect.Stored) error {
		return t.Row(mapped(columns, func(k keyColumn) string { return k.cell(s) })...)
	}
	return keyPrinter{add, t.Flush, t.Flush}, nil
}

// keyListHead is the head of keys -o json, before the keys.
type keyListHead struct {
	documentHead
	Flavour  keys.Flavour   `json:"flavour"` // of the file as a whole
	Prefixes []keys.Storage `json:"prefixes"`
}

// keyListTail is the tail of keys -o json.
type keyListTail struct {
	Keys    int `json:"count"`
	Unknown int `json:"unknown"` // keys in no layout
}

// newKeyList prints the head of the list.
func newKeyList(c *cli.Context, o *opened, format string, layouts keys.Layouts) (p keyPrinter, err error) {
	head := keyListHead{Flavour: layouts.Flavour(), Prefixes: listed(layouts.Storages())}
	var tail keyListTail
	if head.documentHead, err = o.document(c.Context, "KeyList"); err != nil {
		return p, err
	}
	list := render.NewList(c.App.Writer, format)
	add := func(s *inspect.Stored) error {
		if tail.Keys++; s.Unknown != "" {
			tail.Unknown++
		}
		return list.Add(s)
	}
	return keyPrinter{add, list.Flush, func() error { return list.End(tail) }}, list.Begin(head, "keys")
}

// keyColumn is a column of the table.
type keyColumn struct {
	head string
	cell func(*inspect.Stored) string
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

// revision returns the revision of a record, and its index in the transaction if not 0.
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

// encodingOf returns the encoding of a value, and the provider that encrypted it.
func encodingOf(s *inspect.Stored) string {
	switch {
	case s.Encryption == "":
		return s.Encoding
	case s.Encoding == "encrypted":
		return s.Encryption
	}
	return s.Encryption + " " + s.Encoding
}
