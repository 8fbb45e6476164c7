package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

func getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "show objects, as kubectl does",
		ArgsUsage: "SNAPSHOT TYPE[/NAME] [NAME...]",
		Description: `etcdshift get before.db pods -A -o wide
etcdshift get before.db deploy/web -n shop -o yaml
etcdshift get before.db certificates.cert-manager.io -A --stored`,
		UsageText: `TYPE is what kubectl takes: a plural, singular or short name, a kind, with or without the group, a category such as "all", or
several with commas between; "*" is every type. Custom types and their columns come from the CustomResourceDefinitions in the snapshot.

Objects are shown at the version they are stored at, without defaults that a server would add. Ages are relative to the newest
time in the snapshot, or to --age-from. "etcdshift export" prints objects that can be applied.

Exit status: 0 shown, 1 something was not found or could not be read, 2 usage or a TYPE that the snapshot lacks, 3 not printed
without --show-secrets, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "look in namespace `NS` (default: default)"},
			allNamespacesFlag(),
			&cli.StringFlag{Name: "cluster", Usage: "look in logical cluster `NAME` of kcp (default: all)"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "show objects whose labels fit `SELECTOR`"},
			&cli.StringFlag{Name: "field-selector", Usage: "show objects whose fields fit `SELECTOR`, such as status.phase!=Running"},
			&cli.StringFlag{Name: "where",
				Usage: "show objects for which `CEL` is true, redacted values aside, such as 'object.spec.replicas == 0'"},
			&cli.StringFlag{Name: "sort-by", Usage: "sort by the field that `JSONPATH` names, such as .metadata.creationTimestamp"},
			&choiceFlag{words: getFormats(), StringFlag: &cli.StringFlag{
				Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "print `FORMAT`: " + strings.Join(getFormats(), ", ")}},
			&cli.StringFlag{Name: "template", Usage: "the `TEMPLATE` of -o go-template, jsonpath and their like"},
			&cli.BoolFlag{Name: "no-headers", Usage: "print tables without their first line"},
			&cli.StringSliceFlag{Name: "label-columns", Aliases: []string{"L"}, Usage: "print the labels `KEY,...` as columns of tables"},
			&cli.BoolFlag{Name: "show-kind", Usage: "print the kind before names in tables"},
			&cli.BoolFlag{Name: "show-labels", Usage: "print labels as the last column of tables"},
			&cli.BoolFlag{Name: "show-managed-fields", Usage: "print managedFields in JSON and YAML"},
			&cli.BoolFlag{Name: "ignore-not-found", Usage: "a NAME that is not there is no error"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "show what there is and end: a snapshot does not change"},
			&cli.StringFlag{Name: "age-from", Usage: "count ages from `TIME` (RFC 3339, or a date), or now (default: the newest time in the snapshot)"},
			&cli.BoolFlag{Name: "stored", Usage: "add the columns STORED-VERSION, REV, SIZE (bytes) and ENCRYPTION"},
			&cli.Int64Flag{Name: "revision", Usage: "show the state at revision `N`, where the snapshot still has it"},
			atFlag("show"),
			&cli.BoolFlag{Name: "deleted", Usage: "show what was deleted since the last compaction, as it was before"},
			showSecretsFlag()),
		Action: taking(runGet),
	}
}

func runGet(c *cli.Context, args []string) error {
	o, err := readGetOptions(c)
	if err != nil {
		return err
	}
	if c.Bool("watch") {
		warn(c, "a snapshot does not change: --watch shows nothing more")
	}
	complete := func() error { return nil }
	// text never keeps control characters, raw bytes do unless stdout is a terminal
	if o.isTemplate() || o.format == "raw" && render.IsTerminal(c.App.Writer) {
		w := render.NewEscaper(c.App.Writer)
		c.App.Writer, complete = w, w.Close
	}
	reading := progress(c).Phase("reading " + args[0])
	defer reading.End()
	return snapshotFirst(c, args, readSnapshots(c, args[:1], func(files []*opened) error {
		reading.End()
		return errors.Join(get(c, files[0], o, args[1:]), complete())
	}))
}

func get(c *cli.Context, s *opened, o getOptions, words []string) error {
	if err := s.readAt(c); err != nil {
		return err
	}
	reading := progress(c).Phase("reading " + s.Snapshot().Path()).Of(part(0, 0, s))
	defer reading.End()
	r := s.Reader
	if c.IsSet("revision") {
		r = r.At(c.Int64("revision"))
	}
	asked, err := askedFor(c, words, r)
	if err != nil {
		return err
	}
	for _, a := range asked {
		if err := o.selector.Check(a.kind); err != nil {
			return usagef(commandPath(c), "%w", err)
		}
	}
	sift(c, r, asked)
	if o.now.IsZero() && o.isTable() {
		if o.now, err = inspect.NewestTime(c.Context, r); err != nil {
			return err
		}
	}
	if c.Bool("deleted") {
		reading.End()
		if err := sayWindow(c, s.Snapshot()); err != nil {
			return err
		}
	}
	g := &getter{c: c, opened: s, reader: r, options: o, asked: asked, met: map[[2]string]bool{}}
	if format := g.options.format; c.Bool("deleted") && (g.options.isTable() || format == "json" || format == "yaml") {
		if err := g.clock.Read(c.Context, r); err != nil {
			return err
		}
	}
	layouts, err := r.Layouts(c.Context)
	reading.End() // the index is built
	if err != nil {
		return err
	}
	g.layouts = layouts
	// a name stands for one object in one namespace and logical cluster
	g.single = len(asked) == 1 && len(asked[0].names) == 1 &&
		(o.namespace != "" || !asked[0].kind.Namespaced) && (c.IsSet("cluster") || !layouts.Flavour().KCP())
	if err := g.learn(); err != nil {
		return err
	}
	if err := g.printer()(); err != nil {
		return err
	}
	return g.verdict()
}

// askedFor reads TYPE [NAME...] or TYPE/NAME...; "*" is every type that has objects.
func askedFor(c *cli.Context, words []string, r *inspect.Reader) (out []asking, err error) {
	if len(words) != 1 || words[0] != "*" {
		return readAsked(c, words, typesFor(c, words), r)
	}
	types, err := r.TypesEver(c.Context)
	if err != nil {
		return nil, err
	}
	if !c.Bool("deleted") {
		for _, t := range types.All() {
			if t.Objects > 0 {
				out = append(out, asking{kind: t})
			}
		}
		return out, nil
	}
	seen := map[*inspect.Type]bool{}
	layouts, err := r.Layouts(c.Context)
	if err != nil {
		return nil, err
	}
	err = stream.Each(r.Deleted(c.Context, nil), func(d *inspect.Deletion) error {
		key, _, err := layouts.Parse(d.Key)
		if t := types.Of(key.Resource); err == nil && t != nil && !seen[t] {
			seen[t], out = true, append(out, asking{kind: t})
		}
		return nil
	})
	slices.SortFunc(out, func(a, b asking) int { return strings.Compare(a.kind.Name(), b.kind.Name()) })
	return out, err
}

// typesFor finds the types of a snapshot, without reading it where the words name built-in types.
func typesFor(c *cli.Context, words []string) finder {
	if c.Bool("deleted") {
		return (*inspect.Reader).TypesEver
	}
	kinds := make([]string, 0, len(words))
	for _, word := range words {
		kind, _, named := strings.Cut(word, "/")
		if kinds = append(kinds, kind); !named { // the others are names
			break
		}
	}
	if types, ok := inspect.BuiltinTypes(strings.Join(kinds, ",")); ok {
		return func(*inspect.Reader, context.Context) (*inspect.Types, error) { return types, nil }
	}
	return (*inspect.Reader).Types
}

// sift spares the index of the snapshot where few objects of built-in types are asked for.
func sift(c *cli.Context, r *inspect.Reader, asked []asking) {
	var names []string
	all := false
	for _, a := range asked {
		if !a.kind.Builtin {
			return
		}
		all, names = all || len(a.names) == 0, append(names, a.names...)
	}
	if all {
		names = nil
	}
	if !c.Bool("deleted") {
		inspect.Sift(c.Context, r, mapped(asked, func(a asking) *inspect.Type { return a.kind }), names)
	}
}

// asking is a type and the names of its objects; nil for all.
type asking struct {
	kind  *inspect.Type
	names []string
}

// readAsked reads TYPE [NAME...] or TYPE/NAME....
func readAsked(c *cli.Context, words []string, find finder, r *inspect.Reader) (out []asking, err error) {
	named, err := objects.ParseWords(words)
	if err != nil {
		return nil, usagef(commandPath(c), "%w", err)
	}
	for _, word := range named {
		types, err := resolve(c.Context, word.Type, find, []*inspect.Reader{r})
		if err != nil {
			return nil, err
		}
		for _, t := range types {
			if last := len(out) - 1; last >= 0 && out[last].kind == t {
				out[last].names = append(out[last].names, word.Names...)
			} else {
				out = append(out, asking{t, word.Names})
			}
		}
	}
	return out, nil
}

func sayWindow(c *cli.Context, s *snapshot.Snapshot) error {
	oldest, newest, err := s.Kept(c.Context)
	if err != nil {
		return err
	}
	if !c.Bool("quiet") {
		since := "1, the first,"
		if oldest > 1 {
			since = fmt.Sprintf("%d, up to which the store was compacted,", oldest)
		}
		fmt.Fprintf(c.App.ErrWriter, "deletions are known from revision %s to %d; API servers compact every few minutes\n", since, newest)
		fmt.Fprintln(c.App.ErrWriter, `objects created again are not shown; "etcdshift history" shows those of one key`)
	}
	return nil
}

// unparsed returns errors about keys in no layout, which cannot be shown.
func (g *getter) unparsed() (errs []error) {
	if len(g.layouts.Storages()) == 0 {
		return []error{errors.New("no storage prefix found; name it with --prefix")}
	}
	for _, a := range g.asked {
		if g.options.deleted || len(a.names) > 0 {
			continue
		}
		n, err := inspect.Unparsed(g.c.Context, g.reader, a.kind, g.selection(a))
		if err != nil {
			return append(errs, err)
		}
		if n > 0 {
			dir := g.layouts.Dirs(a.kind.Resource)[0]
			errs = append(errs, fmt.Errorf("%s below %s in no layout; \"etcdshift keys\" lists what there is", phrase.Count(n, "key"), dir))
		}
	}
	return errs
}

// verdict returns an error about everything that was not shown.
func (g *getter) verdict() error {
	errs := g.unparsed()
	for _, a := range g.asked {
		for _, name := range a.names {
			if !g.met[[2]string{a.kind.Name(), name}] && !g.options.ignoreNotFound {
				errs = append(errs, fmt.Errorf("%s %q not found%s%s", a.kind.Name(), name, g.where(a.kind.Namespaced), g.namesakes(a, name)))
			}
		}
	}
	missing := func(n int, what, is string) {
		if n > 0 {
			errs = append(errs, fmt.Errorf("%s %s", phrase.Count(n, what), is))
		}
	}
	missing(g.unread, "value", "could not be read")
	missing(g.unasked, "object", "left out: --where has no result for them")
	missing(g.unbounded, "path", "found too much and shown as <error>")
	missing(g.leftOut, "printer column", "not shown")
	if g.kept > 0 {
		err := fmt.Errorf("%s not exported: it takes --show-secrets", phrase.Count(g.kept, "object"))
		if errs == nil {
			return &failure{status: exitRefused, err: err}
		}
		errs = append(errs, err)
	}
	if errs == nil && g.shown == 0 && !g.options.quiet && !g.options.ignoreNotFound {
		elsewhere, err := g.elsewhere()
		if err != nil {
			return err
		}
		fmt.Fprintf(g.c.App.ErrWriter, "nothing found%s\n", elsewhere)
	}
	if g.absent != "" {
		hint := fmt.Sprintf("ask for the field first: --where 'has(%s) && ...'", g.absent)
		return &failure{exitFailed, errors.Join(errs...), hint}
	}
	return errors.Join(errs...)
}

// namesakes names other namespaces with an object of the type and name; "" for none.
func (g *getter) namesakes(a asking, name string) string {
	if g.options.namespace == "" || g.options.deleted {
		return ""
	}
	return namesakes(g.c, []*inspect.Type{a.kind}, name, g.reader)
}

// where names the namespace that was searched; "" if that was all of them.
func (g *getter) where(namespaced bool) string {
	if !namespaced || g.options.namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in namespace %q", g.options.namespace)
}

// elsewhere names the namespace that was searched, and counts the objects in others. It also names
// a logical cluster that the file does not have.
func (g *getter) elsewhere() (string, error) {
	if name := g.options.cluster; name != "" && !g.options.deleted {
		if has, err := g.hasCluster(name); err != nil || !has {
			return fmt.Sprintf(": no logical cluster %q in %s; \"etcdshift kcp list\" lists them", name, render.Printable(g.opened.Snapshot().Path())), err
		}
	}
	others, namespaced := 0, false
	types, err := g.reader.Types(g.c.Context) // with their Objects
	if err != nil {
		return "", err
	}
	for _, a := range g.asked {
		if t := types.Of(a.kind.Resource); t != nil {
			others += t.Objects
		}
		namespaced = namespaced || a.kind.Namespaced
	}
	text := g.where(namespaced)
	if text != "" && others > 0 && !g.options.deleted {
		text += fmt.Sprintf("; with -A there is a choice of %s", phrase.Count(others, "object"))
	}
	return text, nil
}

func (g *getter) hasCluster(name string) (bool, error) {
	for e, err := range g.reader.Raw(g.c.Context, nil) {
		if err != nil {
			return false, err
		}
		if k, err := e.ParseKey(); err == nil && k.Cluster == name {
			return true, nil
		}
	}
	return false, nil
}
