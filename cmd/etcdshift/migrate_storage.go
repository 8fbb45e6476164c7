package main

import (
	"errors"
	"regexp"
	"slices"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/conversion"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/storageversion"
)

func storageCommand() *cli.Command {
	return migration{
		name:  "storage-versions",
		usage: "re-encode at the storage version, trim storedVersions",
		examples: `etcdshift migrate storage-versions --dry-run before.db after.db
etcdshift migrate storage-versions --crd widgets.example.com --report report.json before.db after.db
etcdshift migrate storage-versions --group example.com --to v1beta1 before.db back.db
etcdshift migrate storage-versions --conversion-exec example.com=./convert before.db after.db`,
		text: `Leaves every custom resource at the storage version of its CustomResourceDefinition, byte for byte as a write by an API
server that changes nothing would, and then makes status.storedVersions tell which versions are really stored. After that an old
version can be removed from the definition.`,
		codes: storageversion.Codes(),
		settles: map[string]string{
			"encrypted":          "open them with --encryption-config FILE",
			"conversion-failed":  "the converter says why; mend it and run again",
			"needs-webhook":      "convert them with --conversion-webhook GROUP=URL or --conversion-exec GROUP=COMMAND",
			"unlisted-version":   "say which version takes its place with --map GROUP/OLD=NEW",
			"would-be-plaintext": "name a provider that encrypts first for that resource in the --encryption-config",
		},
		flags: slices.Concat(choiceFlags(), rewriteFlags(), converterFlags()),
		build: buildStorage,
	}.command()
}

// choiceFlags choose CustomResourceDefinitions.
func choiceFlags() []cli.Flag {
	const category = "Which CustomResourceDefinitions (default: all)"
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "crd", Category: category, Usage: "the one of this `NAME`, such as widgets.example.com; may be repeated"},
		&cli.StringSliceFlag{Name: "group", Category: category, Usage: "those of API group `G`; may be repeated"},
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Category: category, Usage: "those whose labels match `SELECTOR`, as kubectl reads it"},
		&cli.StringSliceFlag{Name: "exclude", Category: category, Usage: "not the one of this `NAME`; may be repeated"},
	}
}

// rewriteFlags say what becomes of objects.
func rewriteFlags() []cli.Flag {
	const category = "What becomes of them"
	return []cli.Flag{
		&cli.StringFlag{Name: "to", Category: category, Usage: "make `VERSION` the storage version first, forward or back; takes --crd, --group or --selector"},
		&cli.StringSliceFlag{Name: "map", Category: category, Usage: "read objects of a version that is gone as those of one that is there, `GROUP/OLD=NEW`; may be repeated"},
		&cli.StringFlag{Name: "mode", Category: category, Value: "settled",
			Usage: "`settled|pure`: write what updates that change nothing come to, or what one server-side apply of nothing leaves: without defaults that only the storage version has"},
		&cli.StringFlag{Name: "managed-fields", Category: category, Value: "fix", Usage: "`fix|all|keep`: relabel managedFields on which server-side apply would fail, or all of other versions, or none"},
		&cli.BoolFlag{Name: "rewrap", Category: category, Usage: "encrypt every value of the snapshot, native ones too, by the provider and key that --encryption-config names first"},
	}
}

func buildStorage(c *cli.Context, _ []string) (transform.Transform, error) {
	o, err := readStorageChoices(c)
	if err != nil {
		return nil, err
	}
	m := &storageMigration{}
	if m.converters, err = readConverters(c); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	o.Converters = map[string]storageversion.Converter{}
	for group, converter := range m.converters {
		o.Converters[group] = converter
	}
	m.Migration = storageversion.New(o)
	return m, nil
}

// storageMigration is the migration with the converters it uses.
type storageMigration struct {
	*storageversion.Migration
	converters map[string]*conversion.Converter
}

// Close stops the converters.
func (m *storageMigration) Close() error {
	var errs []error
	for _, c := range m.converters {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func readStorageChoices(c *cli.Context) (o storageversion.Options, err error) {
	o = storageversion.Options{CRDs: c.StringSlice("crd"), Groups: c.StringSlice("group"), Exclude: c.StringSlice("exclude"), To: c.String("to"), Rewrap: c.Bool("rewrap")}
	o.Prefixes = readPrefixes(c)
	mode, err := oneOf(c, "mode", "settled", "pure")
	if err != nil {
		return o, err
	}
	if mode == "pure" {
		o.Mode = schema.Pure
	}
	fields, err := oneOf(c, "managed-fields", "fix", "all", "keep")
	if err != nil {
		return o, err
	}
	o.KeepManagedFields, o.AllManagedFields = fields == "keep", fields == "all"
	if c.IsSet("selector") {
		if o.Selector, err = labels.Parse(c.String("selector")); err != nil {
			return o, usagef(commandPath(c), "--selector is %q: %v", c.String("selector"), err)
		}
	}
	if c.IsSet("to") && !c.IsSet("crd") && !c.IsSet("group") && !c.IsSet("selector") {
		return o, usagef(commandPath(c), "--to VERSION changes CustomResourceDefinitions; say which with --crd, --group or --selector")
	}
	if o.Rewrap && !c.IsSet("encryption-config") {
		return o, usagef(commandPath(c), "--rewrap takes --encryption-config FILE")
	}
	o.Mappings, err = readMappings(c)
	return o, err
}

// mapping is what --map takes.
var mapping = regexp.MustCompile(`^([a-z0-9.-]+)/([a-z0-9-]+)=([a-z0-9-]+)$`)

func readMappings(c *cli.Context) (mappings []storageversion.Mapping, err error) {
	for _, word := range c.StringSlice("map") {
		m := mapping.FindStringSubmatch(word)
		if m == nil || m[2] == m[3] {
			return nil, usagef(commandPath(c), "--map is %q; it takes GROUP/OLD=NEW, such as example.com/v1alpha1=v1", word)
		}
		is := storageversion.Mapping{Group: m[1], Old: m[2], New: m[3]}
		for _, other := range mappings { // only one could be followed
			if other.Group == is.Group && other.Old == is.Old && other.New != is.New {
				return nil, usagef(commandPath(c), "--map takes %s/%s to %s and to %s", is.Group, is.Old, other.New, is.New)
			}
		}
		mappings = append(mappings, is)
	}
	return mappings, nil
}
