package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

func keysCommand() *cli.Command {
	return &cli.Command{
		Name:      "keys",
		Usage:     "list raw keys and their parts",
		ArgsUsage: "SNAPSHOT [PREFIX]",
		Description: `etcdshift keys before.db /registry/pods/
etcdshift keys -o jsonl before.db | jq -r 'select(.unknown) | .key'
etcdshift keys --raw before.db /registry/pods/default/web > pod.bin`,
		UsageText: `Lists the live keys of a snapshot, or those that begin with PREFIX, in the order of their last
write. Each key is parsed by the layout below its storage prefix: Kubernetes, OpenShift, a shard of kcp or its cache
server. Keys in no layout have a "?" for the resource.

With --raw, PREFIX is a whole key; its value is written, decrypted with --encryption-config. Secrets and other values
with a credential need --show-secrets.

Exit status: 0 read, 1 unreadable or damaged, 2 usage, 3 the value needs --show-secrets, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			outputFlag("table", "wide", "json", "jsonl (one key a line)", "name"),
			&cli.BoolFlag{Name: "history", Usage: "list every record in the file, including superseded records and " +
				"deletions"},
			&cli.BoolFlag{Name: "raw", Usage: "write the value of one key"},
			&cli.BoolFlag{Name: "stored", Usage: "with --raw: write the stored bytes, encrypted or not"},
			&cli.BoolFlag{Name: "show-secrets", Usage: "with --raw: also write a value with a credential"}),
		Action: taking(runKeys),
	}
}

func runKeys(c *cli.Context, args []string) error {
	if err := checkRaw(c, len(args)); err != nil {
		return err
	}
	return snapshotFirst(c, args, readSnapshots(c, args[:1], func(files []*opened) error {
		prefix := []byte(strings.Join(args[1:], ""))
		if c.Bool("raw") {
			return printRaw(c, files[0], prefix)
		}
		return printKeys(c, files[0], prefix)
	}))
}

func checkRaw(c *cli.Context, args int) error {
	path := commandPath(c)
	switch raw := c.Bool("raw"); {
	case raw && args != 2:
		return usagef(path, "--raw takes SNAPSHOT and KEY")
	case raw && (c.IsSet("output") || c.Bool("history")):
		return usagef(path, "--raw writes one value; it takes neither -o nor --history")
	case !raw && (c.Bool("stored") || c.Bool("show-secrets")):
		return usagef(path, "--stored and --show-secrets go with --raw; without it no value is shown")
	}
	return nil
}

func printRaw(c *cli.Context, o *opened, key []byte) error {
	e, err := o.Get(c.Context, key)
	switch {
	case err != nil:
		return err
	case e == nil:
		return &failure{exitFailed, fmt.Errorf("there is no key %q%s", key, belowNamed(c)),
			`"etcdshift keys SNAPSHOT PREFIX" lists those that begin alike`}
	}
	value := e.Value
	switch {
	case c.Bool("stored"):
		value = e.Stored
	case e.Undecryptable != nil && c.IsSet(encryptionConfig):
		return &failure{exitFailed, fmt.Errorf("key %q: %w", key, e.Undecryptable), "--stored writes it as it is"}
	}
	hide, err := o.Secrets(c.Context)
	if err != nil {
		return err
	}
	if !c.Bool("show-secrets") && hide.Value(key, value) {
		return &failure{exitRefused, fmt.Errorf("key %q: its value holds a credential", key),
			"--show-secrets writes it all the same"}
	}
	if render.IsTerminal(c.App.Writer) && !render.IsText(value) {
		return &failure{exitFailed, fmt.Errorf("key %q: its value is binary, and stdout a terminal", key),
			"write it to a file: add > FILE"}
	}
	_, err = c.App.Writer.Write(value)
	return err
}

// belowNamed names the searched storage prefixes if --prefix is given.
func belowNamed(c *cli.Context) string {
	return either(" below the storage prefix ", stream.Mapped(readPrefixes(c),
		func(prefix string) string { return cmp.Or(prefix, "/") }))
}

// printKeys lists keys in one of the formats, each as soon as it is read.
func printKeys(c *cli.Context, o *opened, prefix []byte) error {
	reading := progress(c).Phase("reading " + o.Snapshot().Path()).Of(part(0, 0, o))
	layouts, err := o.Layouts(c.Context)
	reading.End()
	if err != nil {
		return err
	}
	var tail keyListTail
	add, flush, err := keyPrinter(c, o, layouts)
	if err != nil {
		return err
	}
	for s, err := range inspect.StoredRecords(c.Context, o.Reader, prefix, c.Bool("history")) {
		if err != nil {
			return errors.Join(err, flush(nil))
		}
		if tail.Keys++; s.Unknown != "" {
			tail.Unknown++
		}
		if err := add(s); err != nil {
			return err
		}
	}
	if tail.Keys == 0 && len(prefix) > 0 {
		warn(c, fmt.Sprintf("no key begins with %q%s", prefix, belowNamed(c)))
	}
	return flush(&tail)
}

// keyPrinter returns a function that prints a key, and one that ends the list: after an error
// without a tail.
func keyPrinter(
	c *cli.Context, o *opened, layouts keys.Layouts,
) (add func(*inspect.Stored) error, end func(*keyListTail) error, err error) {
	format := c.String("output")
	switch format {
	case "name":
		p := render.NewPage(c.App.Writer)
		add = func(s *inspect.Stored) error {
			_, err := fmt.Fprintln(p, render.Printable(s.Key))
			return err
		}
		return add, func(*keyListTail) error { return p.Flush() }, nil
	case "json", "jsonl":
		head := keyListHead{Flavour: layouts.Flavour(), Prefixes: listed(layouts.Storages())}
		if head.documentHead, err = o.document(c.Context, "KeyList"); err != nil {
			return nil, nil, err
		}
		list := render.NewList(c.App.Writer, format)
		end = func(tail *keyListTail) error {
			if tail == nil {
				return list.Flush()
			}
			return list.End(tail)
		}
		return func(s *inspect.Stored) error { return list.Add(s) }, end, list.Begin(head, "keys")
	}
	columns := keyColumns(layouts, format == "wide", c.Bool("history"))
	t := render.NewFlow(c.App.Writer, stream.Mapped(columns, func(k keyColumn) string { return k.head })...)
	add = func(s *inspect.Stored) error {
		return t.Row(stream.Mapped(columns, func(k keyColumn) string { return k.cell(s) })...)
	}
	return add, func(*keyListTail) error { return t.Flush() }, nil
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
	add(has(func(f keys.Flavour) bool { return f == keys.FlavourKCPCache }), "SHARD",
		func(s *inspect.Stored) string { return s.Shard })
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
	add(true, "BYTES", func(s *inspect.Stored) string { return strconv.Itoa(s.Bytes) })
	add(true, "ENCODING", encodingOf)
	add(wide, "KEY", func(s *inspect.Stored) string { return s.Key })
	return all
}

// revision returns the revision of a record, and its index in the transaction if not 0.
func revision(s *inspect.Stored) string {
	if s.Sub == 0 {
		return strconv.FormatInt(s.Revision, 10)
	}
	return fmt.Sprintf("%d.%d", s.Revision, s.Sub)
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
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
