package cli

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/input"
	"github.com/etcdshift/etcdshift/internal/objects"
)

// getOptions are the flags of the commands that show objects; each command has some.
type getOptions struct {
	namespace, cluster string // "" for all
	selector           objects.Selector
	format, template   string             // of -o FORMAT=TEMPLATE
	labelColumns       []string           // keys of labels
	where              *objects.Condition // nil for none
	expression         string             // of where
	sortBy             string
	now                time.Time

	quiet, secrets, deleted, ignoreNotFound, managedFields bool
	noHeaders, showKind, showLabels, stored                bool
	crds, needed, all                                      bool // of export
}

// newGetOptions reads the flags that stand for themselves. Those that a command lacks are zero.
func newGetOptions(c *cli.Context, namespace string) getOptions {
	o := getOptions{
		namespace: namespace, cluster: c.String("cluster"), selector: objects.Everything(),
		expression: c.String("where"), sortBy: c.String("sort-by"),
		quiet: c.Bool("quiet"), secrets: c.Bool("show-secrets"), deleted: c.Bool("deleted"),
		ignoreNotFound: c.Bool("ignore-not-found"), managedFields: c.Bool("show-managed-fields"),
		noHeaders: c.Bool("no-headers"), showKind: c.Bool("show-kind"), showLabels: c.Bool("show-labels"),
		stored: c.Bool("stored"), crds: c.Bool("crds"), needed: c.Bool("needed"), all: c.Bool("all"),
	}
	if c.Bool("all-namespaces") { // as kubectl takes both
		o.namespace = ""
	}
	return o
}

func readGetOptions(c *cli.Context) (o getOptions, err error) {
	path := commandPath(c)
	o = newGetOptions(c, cmp.Or(c.String("namespace"), "default"))
	switch {
	case c.IsSet("at") && (c.IsSet("revision") || c.Bool("deleted")):
		return o, usagef(path, "--at stands for itself: not beside --revision or --deleted")
	case c.IsSet("revision") && (c.Bool("deleted") || c.Int64("revision") < 1):
		return o, usagef(path, "--revision takes a revision from 1, and not beside --deleted")
	}
	if o.selector, err = objects.ParseSelector(c.String("selector"), c.String("field-selector")); err != nil {
		return o, usagef(path, "%w", err)
	}
	if c.IsSet("where") {
		if o.where, err = objects.Compile(c.String("where")); err != nil {
			return o, usagef(path, "--where: %w", err)
		}
	}
	switch from := c.String("age-from"); from {
	case "":
	case "now":
		o.now = time.Now()
	default:
		if o.now, err = parseTime(from); err != nil {
			return o, usagef(path, "--age-from is %q; it takes a time such as 2026-11-20T20:50:00Z, or now", from)
		}
	}
	for _, keys := range c.StringSlice("label-columns") {
		o.labelColumns = append(o.labelColumns, strings.Split(keys, ",")...)
	}
	return o, o.readFormat(c, path)
}

// getFormats are the formats of -o; a template follows those that end in "=".
func getFormats() []string {
	return []string{"table", "wide", "name", "json", "yaml", "raw", "jsonpath=", "jsonpath-as-json=", "jsonpath-file=", "go-template=",
		"go-template-file=", "custom-columns=", "custom-columns-file="}
}

// isTable reports whether the format is a table.
func (o *getOptions) isTable() bool { return o.format == "table" || o.format == "wide" }

// isTemplate reports whether the format runs a template over all objects at once.
func (o *getOptions) isTemplate() bool {
	return slices.Contains([]string{"jsonpath", "jsonpath-as-json", "go-template"}, o.format)
}

func (o *getOptions) readFormat(c *cli.Context, path string) error {
	output, apart := c.String("output"), c.String("template")
	name, template, has := strings.Cut(output, "=")
	if name = cmp.Or(map[string]string{"template": "go-template", "templatefile": "go-template-file"}[name], name); apart != "" && !c.IsSet("output") {
		name = "go-template"
	}
	takes := slices.Contains(getFormats(), name+"=")
	switch {
	case name == "kyaml" && !has:
		return &failure{exitUsage, usagef(path, "--output is %q", output), viaKubectl}
	case !takes && (has || !slices.Contains(getFormats(), name)):
		return usagef(path, "--output is %q; it takes %s", output, strings.Join(getFormats(), ", "))
	case apart != "" && (has || !takes):
		return usagef(path, "--template is the template of -o go-template, jsonpath and their like, not of -o %s", output)
	case takes && template+apart == "":
		return usagef(path, "--output %s needs a template, behind it or as --template", output)
	case c.Bool("stored") && name != "table" && name != "wide":
		return usagef(path, "--stored adds columns to tables; -o %s has none", name)
	}
	kind, isFile := strings.CutSuffix(name, "-file")
	if o.format, o.template = kind, template+apart; !isFile {
		return nil
	}
	text, err := input.ReadFlag(c.Context, "--output "+name, o.template)
	o.template = string(text)
	return err
}
