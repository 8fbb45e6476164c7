package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

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
			"needs-webhook":      "convert them with --conversion-webhook GROUP=URL or --conversion-exec GROUP=COMMAND",
			"unlisted-version":   "say which version takes its place with --map GROUP/OLD=NEW",
			"would-be-plaintext": "name a provider that encrypts first for that resource in the --encryption-config",
		},
		flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "crd", Usage: "only the CustomResourceDefinition `NAME`, such as widgets.example.com; may be repeated"},
			&cli.StringSliceFlag{Name: "group", Usage: "only those of API group `G`; may be repeated"},
			&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "only those whose labels match `SELECTOR`, as kubectl reads it"},
			&cli.StringSliceFlag{Name: "exclude", Usage: "not the CustomResourceDefinition `NAME`; may be repeated"},
			&cli.StringFlag{Name: "mode", Value: "settled", Usage: "`settled|pure`: what any number of writes that change nothing leaves, or what the first one does"},
			&cli.StringFlag{Name: "to", Usage: "make `VERSION` the storage version first; takes --crd, --group or --selector"},
			&cli.StringSliceFlag{Name: "map", Usage: "read objects of a version that is gone as those of another, `GROUP/OLD=NEW`; may be repeated"},
			&cli.StringFlag{Name: "managed-fields", Value: "fix", Usage: "`fix|keep`: relabel managedFields that server-side apply would fail on, or leave them"},
			&cli.StringSliceFlag{Name: "conversion-webhook", Usage: "convert objects of a group by a webhook, `GROUP=URL`; may be repeated"},
			&cli.StringSliceFlag{Name: "conversion-exec", Usage: "convert objects of a group by a command that takes a ConversionReview and prints one, `GROUP=COMMAND`; may be repeated"},
			&cli.StringFlag{Name: "conversion-ca", Usage: "trust webhooks that the certificates in `FILE` vouch for (default: caBundle of the CustomResourceDefinition)"},
			&cli.StringFlag{Name: "conversion-client-cert", Usage: "show webhooks the certificate in `FILE`"},
			&cli.StringFlag{Name: "conversion-client-key", Usage: "its key, in `FILE`"},
			&cli.DurationFlag{Name: "conversion-timeout", Value: 30 * time.Second, Usage: "give up a call to a converter after `TIME`"},
			&cli.BoolFlag{Name: "rewrap", Usage: "encrypt every value of the snapshot by the provider and key that --encryption-config names first"},
		},
		build: buildStorage,
	}.command()
}

func buildStorage(c *cli.Context) (transform.Transform, error) {
	o, err := readStorageChoices(c)
	if err != nil {
		return nil, err
	}
	o.Converters = map[string]storageversion.Converter{}
	m := &storageMigration{Migration: storageversion.New(o)}
	if err := readConverters(c, o.Converters, &m.converters); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// storageMigration is the migration with the converters it uses.
type storageMigration struct {
	*storageversion.Migration
	converters []*conversion.Converter
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
	if o.Prefixes, err = readPrefixes(c); err != nil {
		return o, err
	}
	mode, err := oneOf(c, "mode", "settled", "pure")
	if err != nil {
		return o, err
	}
	if mode == "pure" {
		o.Mode = schema.Pure
	}
	fields, err := oneOf(c, "managed-fields", "fix", "keep")
	if err != nil {
		return o, err
	}
	o.KeepManagedFields = fields == "keep"
	if c.IsSet("selector") {
		if o.Selector, err = labels.Parse(c.String("selector")); err != nil {
			return o, usagef(commandPath(c), "--selector is %q: %v", c.String("selector"), err)
		}
	}
	if c.IsSet("to") && (o.To == "" || !c.IsSet("crd") && !c.IsSet("group") && !c.IsSet("selector")) {
		return o, usagef(commandPath(c), "--to VERSION changes CustomResourceDefinitions; say which with --crd, --group or --selector")
	}
	if o.Rewrap && !c.IsSet("encryption-config") {
		return o, usagef(commandPath(c), "--rewrap takes --encryption-config FILE")
	}
	for _, word := range c.StringSlice("map") {
		m := mapping.FindStringSubmatch(word)
		if m == nil {
			return o, usagef(commandPath(c), "--map is %q; it takes GROUP/OLD=NEW, such as example.com/v1alpha1=v1", word)
		}
		o.Mappings = append(o.Mappings, storageversion.Mapping{Group: m[1], Old: m[2], New: m[3]})
	}
	return o, nil
}

// mapping is what --map takes.
var mapping = regexp.MustCompile(`^([a-z0-9.-]+)/([a-z0-9-]+)=([a-z0-9-]+)$`)

// readConverters makes the converters, by group; started are those that have to be closed.
func readConverters(c *cli.Context, byGroup map[string]storageversion.Converter, started *[]*conversion.Converter) error {
	files := map[string][]byte{}
	for _, flag := range []string{"conversion-ca", "conversion-client-cert", "conversion-client-key"} {
		if !c.IsSet(flag) {
			continue
		}
		if len(c.StringSlice("conversion-webhook")) == 0 {
			return usagef(commandPath(c), "--%s takes --conversion-webhook", flag)
		}
		data, err := os.ReadFile(c.String(flag))
		if err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
		files[flag] = data
	}
	timeout := c.Duration("conversion-timeout")
	if timeout <= 0 {
		return usagef(commandPath(c), "--conversion-timeout is %s; it takes a time such as 30s", timeout)
	}
	for _, flag := range []string{"conversion-webhook", "conversion-exec"} {
		for _, word := range c.StringSlice(flag) {
			group, to, ok := strings.Cut(word, "=")
			if !ok || group == "" || to == "" {
				return usagef(commandPath(c), "--%s is %q; it takes GROUP=%s", flag, word, map[string]string{"conversion-webhook": "URL", "conversion-exec": "COMMAND"}[flag])
			}
			if byGroup[group] != nil {
				return usagef(commandPath(c), "--%s: group %q has a converter already", flag, group)
			}
			var converter *conversion.Converter
			var err error
			if flag == "conversion-webhook" {
				converter, err = conversion.Webhook(conversion.WebhookOptions{
					URL: to, CA: files["conversion-ca"], ClientCert: files["conversion-client-cert"], ClientKey: files["conversion-client-key"], Timeout: timeout,
				})
			} else {
				converter, err = conversion.Command(conversion.CommandOptions{Command: to, Timeout: timeout})
			}
			if err != nil {
				return usagef(commandPath(c), "--%s: %v", flag, err)
			}
			byGroup[group] = converter
			*started = append(*started, converter)
		}
	}
	return nil
}
