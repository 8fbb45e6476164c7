package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/get"
	"github.com/etcdshift/etcdshift/internal/input"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

func getCommand() *cli.Command {
	return &cli.Command{
		Name:      "get",
		Usage:     "show objects, as kubectl does",
		ArgsUsage: "SNAPSHOT TYPE[/NAME] [NAME...]",
		Description: `etcdshift get before.db pods -A -o wide
etcdshift get before.db deploy/web -n shop -o yaml
etcdshift get before.db certificates.cert-manager.io -A --stored`,
		UsageText: `TYPE is a type as in kubectl: a plural, singular or short name, or a kind, with or without the
group; a category such as "all"; or several with commas between; "*" is every type. Custom types and their columns
come from the CustomResourceDefinitions in the snapshot.

Objects are shown at their stored version, without the defaults of a server. Ages are relative to the newest time in
the snapshot, or to --age-from. "-o name" reads only keys: it shows unreadable objects, too. "etcdshift export"
prints objects for "kubectl apply".

--deleted --free-pages also searches the free pages of the file, byte by byte, for objects deleted before the last
compaction. Each state found is true, but later ones may be missing, and the revision of the deletion may be unknown.

Exit status: 0 shown, 1 an object was not found or could not be read, 2 usage, or the snapshot lacks the TYPE, 3 not
printed without --show-secrets, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"},
				Usage: "look in namespace `NS` (default: default)"},
			allNamespacesFlag(),
			&cli.StringFlag{Name: "cluster", Usage: "look in logical cluster `NAME` of kcp (default: all)"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"},
				Usage: "show objects with labels that match `SELECTOR`"},
			&cli.StringFlag{Name: "field-selector",
				Usage: "show objects with fields that match `SELECTOR`, such as status.phase!=Running"},
			&cli.StringFlag{Name: "where",
				Usage: "show objects for which the expression `CEL` is true, such as " +
					"'object.spec.replicas == 0'; it reads redacted values"},
			&cli.StringFlag{Name: "sort-by", Usage: "sort by the field at `JSONPATH`, such as " +
				".metadata.creationTimestamp"},
			&choiceFlag{words: getFormats(), StringFlag: &cli.StringFlag{
				Name: "output", Aliases: []string{"o"}, Value: "table",
				Usage: "print `FORMAT`: " + strings.Join(getFormats(), ", ")}},
			&cli.StringFlag{Name: "template",
				Usage: "use `TEMPLATE` with -o go-template, jsonpath and similar formats"},
			&cli.BoolFlag{Name: "no-headers", Usage: "print tables without headers"},
			&cli.StringSliceFlag{Name: "label-columns", Aliases: []string{"L"},
				Usage: "print the labels `KEY,...` as columns of tables"},
			&cli.BoolFlag{Name: "show-kind", Usage: "print the kind in front of names in tables"},
			&cli.BoolFlag{Name: "show-labels", Usage: "print labels as the last column of tables"},
			&cli.BoolFlag{Name: "show-managed-fields", Usage: "print managedFields in JSON and YAML"},
			&cli.BoolFlag{Name: "ignore-not-found", Usage: "do not fail if a NAME is missing"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"},
				Usage: "show the objects and exit: a snapshot does not change"},
			&cli.StringFlag{Name: "age-from", Usage: "count ages from `TIME` (RFC 3339, or a date), or now (default: " +
				"the newest time in the snapshot)"},
			&cli.BoolFlag{Name: "stored", Usage: "add the columns STORED-VERSION, REV, SIZE (bytes) and ENCRYPTION"},
			&cli.Int64Flag{Name: "revision", Usage: "show the state at revision `N`, if the snapshot still has it"},
			atFlag("show"),
			&cli.BoolFlag{Name: "deleted", Usage: "show objects deleted since the last compaction, in their last " +
				"state"},
			freePagesFlag("states of deleted objects"),
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
	// text never keeps control characters; raw bytes do unless stdout is a terminal
	text := []string{"jsonpath", "jsonpath-as-json", "go-template"}
	if slices.Contains(text, o.Format) || o.Format == "raw" && render.IsTerminal(c.App.Writer) {
		w := render.NewEscaper(c.App.Writer)
		o.Out, complete = w, w.Close
	}
	reading := progress(c).Phase("reading " + args[0])
	defer reading.End()
	o.Begin = reading.End
	return snapshotFirst(c, args, readSnapshots(c, args[:1], func(files []*opened) error {
		reading.Of(part(0, 0, files...))
		return errors.Join(printObjects(c, files[0], o, args[1:]), complete())
	}))
}

// printObjects prints the objects of a snapshot named by words.
func printObjects(c *cli.Context, s *opened, o get.Options, words []string) error {
	r, err := s.readState(c)
	if err != nil {
		return err
	}
	asked, err := askedFor(c, words, r)
	if err != nil {
		return err
	}
	for _, a := range asked {
		if err := o.Selector.Check(a.Type); err != nil {
			return usagef(commandPath(c), "%w", err)
		}
	}
	sift(c, r, asked)
	if o.Deleted {
		o.Begin()
		if err := sayWindow(c, s.Snapshot()); err != nil {
			return err
		}
	}
	o.Head = func() (any, error) {
		head := objectList{APIVersion: "v1"}
		head.Etcdshift.APIVersion, head.Etcdshift.Tool, head.Etcdshift.At = apiVersion, tool(), s.at
		head.Etcdshift.Input, err = s.input(c.Context)
		return head, err
	}
	return showError(c, get.Print(c.Context, r, asked, o))
}

// showError gives an error of package get its exit status.
func showError(c *cli.Context, err error) error {
	if refused := (*get.RefusedError)(nil); errors.As(err, &refused) {
		return &failure{status: exitRefused, err: err}
	}
	return usageOf(c, err)
}

// objectList is the head of a List of objects; as in all JSON answers, "etcdshift" names the input.
type objectList struct {
	APIVersion string `json:"apiVersion"`
	Etcdshift  struct {
		APIVersion string         `json:"apiVersion"`
		Input      inputInfo      `json:"input"`
		Tool       transform.Tool `json:"tool"`
		At         *stateAt       `json:"at,omitempty"` // the state selected by --at
	} `json:"etcdshift"`
}

// getOptions reads the independent flags. Flags missing in a command are zero.
func getOptions(c *cli.Context, namespace string) get.Options {
	o := get.Options{
		Out: c.App.Writer, Errs: c.App.ErrWriter,
		Namespace: namespace, Cluster: c.String("cluster"), AnyCluster: !c.IsSet("cluster"),
		Selector:   objects.Everything(),
		Expression: c.String("where"), SortBy: c.String("sort-by"),
		Quiet: c.Bool("quiet"), Secrets: c.Bool("show-secrets"), Deleted: c.Bool("deleted"),
		IgnoreNotFound: c.Bool("ignore-not-found"), ManagedFields: c.Bool("show-managed-fields"),
		NoHeaders: c.Bool("no-headers"), ShowKind: c.Bool("show-kind"), ShowLabels: c.Bool("show-labels"),
		Stored: c.Bool("stored"), FreePages: c.Bool("free-pages"),
	}
	if c.Bool("all-namespaces") { // like kubectl with both flags
		o.Namespace = ""
	}
	return o
}

// checkDeleted checks the flags that select a state, or deleted objects.
func checkDeleted(c *cli.Context) error {
	path := commandPath(c)
	switch {
	case c.IsSet("at") && (c.IsSet("revision") || c.Bool("deleted")):
		return usagef(path, "--at stands for itself: not beside --revision or --deleted")
	case c.Bool("free-pages") && !c.Bool("deleted"):
		return usagef(path, "--free-pages needs --deleted: it finds single records, not a state")
	case c.IsSet("revision") && (c.Bool("deleted") || c.Int64("revision") < 1):
		return usagef(path, "--revision takes a revision from 1, and not beside --deleted")
	}
	return nil
}

func readGetOptions(c *cli.Context) (o get.Options, err error) {
	path := commandPath(c)
	o = getOptions(c, cmp.Or(c.String("namespace"), "default"))
	if err = checkDeleted(c); err != nil {
		return o, err
	}
	if o.Selector, err = objects.ParseSelector(c.String("selector"), c.String("field-selector")); err != nil {
		return o, usagef(path, "%w", err)
	}
	if c.IsSet("where") {
		if o.Where, err = objects.Compile(c.String("where")); err != nil {
			return o, usagef(path, "--where: %w", err)
		}
	}
	switch from := c.String("age-from"); from {
	case "":
	case "now":
		o.Now = time.Now()
	default:
		if o.Now, err = parseTime(from); err != nil {
			return o, usagef(path, "--age-from is %q; it takes a time such as 2026-11-20T20:50:00Z, or now", from)
		}
	}
	for _, keys := range c.StringSlice("label-columns") {
		o.LabelColumns = append(o.LabelColumns, strings.Split(keys, ",")...)
	}
	return o, readFormat(c, &o)
}

// getFormats are the formats of -o; formats ending in "=" take a template.
func getFormats() []string {
	return []string{"table", "wide", "name", "json", "yaml", "raw", "jsonpath=", "jsonpath-as-json=",
		"jsonpath-file=", "go-template=", "go-template-file=", "custom-columns=", "custom-columns-file="}
}

// readFormat reads -o and --template.
func readFormat(c *cli.Context, o *get.Options) error {
	path, output, apart := commandPath(c), c.String("output"), c.String("template")
	name, template, has := strings.Cut(output, "=")
	if name = cmp.Or(map[string]string{"template": "go-template", "templatefile": "go-template-file"}[name],
		name); apart != "" && !c.IsSet("output") {
		name = "go-template"
	}
	takes := slices.Contains(getFormats(), name+"=")
	switch {
	case name == "kyaml" && !has:
		return &failure{exitUsage, usagef(path, "--output is %q", output), viaKubectl}
	case !takes && (has || !slices.Contains(getFormats(), name)):
		return usagef(path, "--output is %q; it takes %s", output, strings.Join(getFormats(), ", "))
	case apart != "" && (has || !takes):
		return usagef(path, "--template is the template of -o go-template, jsonpath and their like, not of -o %s",
			output)
	case takes && template+apart == "":
		return usagef(path, "--output %s needs a template, behind it or as --template", output)
	case c.Bool("stored") && name != "table" && name != "wide":
		return usagef(path, "--stored adds columns to tables; -o %s has none", name)
	}
	kind, isFile := strings.CutSuffix(name, "-file")
	if o.Format, o.Template = kind, template+apart; !isFile {
		return nil
	}
	text, err := input.ReadFlag(c.Context, "--output "+name, o.Template)
	o.Template = string(text)
	return err
}

// askedFor reads TYPE [NAME...] or TYPE/NAME...; "*" is every type with objects.
func askedFor(c *cli.Context, words []string, r *inspect.Reader) (out []get.Asked, err error) {
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
				out = append(out, get.Asked{Type: t})
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
			seen[t], out = true, append(out, get.Asked{Type: t})
		}
		return nil
	})
	slices.SortFunc(out, func(a, b get.Asked) int { return strings.Compare(a.Type.Name(), b.Type.Name()) })
	return out, err
}

// typesFor finds the types of a snapshot, without reading the snapshot if the words name built-in
// types.
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

// sift avoids the index of the snapshot for a few objects of built-in types.
func sift(c *cli.Context, r *inspect.Reader, asked []get.Asked) {
	var names []string
	all := false
	for _, a := range asked {
		if !a.Type.Builtin || c.Bool("deleted") {
			return
		}
		all, names = all || len(a.Names) == 0, append(names, a.Names...)
	}
	if all {
		names = nil
	}
	inspect.Sift(c.Context, r, stream.Mapped(asked, func(a get.Asked) *inspect.Type { return a.Type }), names)
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
		fmt.Fprintf(c.App.ErrWriter, "deletions are known from revision %s to %d; API servers compact every "+
			"few minutes\n", since, newest)
		if oldest > 1 && !c.Bool("free-pages") {
			fmt.Fprintln(c.App.ErrWriter, "--free-pages also finds objects that were deleted earlier")
		}
		fmt.Fprintln(c.App.ErrWriter, `objects created again are not shown; "etcdshift history" shows those of one key`)
	}
	return nil
}
