package storageversion

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "migrate storage-versions".
var Spec = transform.Spec{
	Group: transform.GroupMigrate,
	Name:  "storage-versions",
	Usage: "re-encode at the storage version, trim storedVersions",
	Examples: `etcdshift migrate storage-versions --dry-run before.db after.db
etcdshift migrate storage-versions --crd widgets.example.com \
    --report report.json before.db after.db
etcdshift migrate storage-versions --group example.com --to v1beta1 \
    before.db back.db
etcdshift migrate storage-versions --conversion-exec example.com=./convert \
    before.db after.db
etcdshift migrate storage-versions --kubernetes 1.35 before.db back.db`,
	Text: `Stores every custom resource at the storage version of its CustomResourceDefinition, with the bytes that
an API server would store after an update without changes, and then lists only the versions that are still stored in
status.storedVersions. After that, an old version can be removed from the definition. It repairs "must appear in
spec.versions", "request to convert CR from an invalid group/version" (--map) and "conversion webhook for ...
failed".

With --native or --kubernetes it also stores objects of built-in kinds as a server of that release would, newer or
older: for the return to an older release after a failed upgrade, and for an old snapshot on a new release. A field
that the older version cannot hold is named. Without these flags, objects of built-in kinds stay unchanged.`,
	Codes: codes(),
	Settles: map[string]string{
		finding.Encrypted.Name:    "decrypt them with --encryption-config FILE",
		codeConversionFailed.Name: "the message of the converter says why; fix the converter and run again",
		codeNeedsWebhook.Name: "convert them with --conversion-webhook GROUP=URL or --conversion-exec " +
			"GROUP=COMMAND",
		codeUnlistedVersion.Name: "name the version to use instead with --map GROUP/OLD=NEW",
		transform.CodeWouldBePlaintext.Name: "name a provider that encrypts first for that resource in the " +
			"--encryption-config",
	},
	Sections: []transform.Section{&Definitions{}},
	Flags:    slices.Concat(choiceFlags, rewriteFlags, converterFlags),
	New:      newFromArgs,
}

const (
	choiceCategory  = "Which CustomResourceDefinitions (default: all)"
	rewriteCategory = "How to rewrite objects"
)

var choiceFlags = []transform.Flag{
	{Name: "crd", Category: choiceCategory, Default: []string{},
		Usage: "select the definition `NAME`, such as widgets.example.com; may be repeated"},
	{Name: "group", Category: choiceCategory, Default: []string{}, Usage: "select API group `G`; may be repeated"},
	{Name: "selector", Short: "l", Category: choiceCategory,
		Usage: "select definitions with labels that match `SELECTOR`, as in kubectl"},
	{Name: "exclude", Category: choiceCategory, Default: []string{},
		Usage: "exclude the definition `NAME`; may be repeated"},
}

var rewriteFlags = []transform.Flag{
	{Name: "to", Category: rewriteCategory,
		Usage: "make `VERSION` the storage version first, newer or older; requires " +
			"--crd, --group or --selector"},
	{Name: "map", Category: rewriteCategory, Default: []string{},
		Usage: "read objects of the removed version OLD as version NEW, `GROUP/OLD=NEW`; may be repeated"},
	{Name: "mode", Category: rewriteCategory, Default: "settled", Choices: []string{"settled", "pure"},
		Usage: "`settled|pure`: write the bytes after updates without changes, or after one empty server-side " +
			"apply, without defaults that only the storage version has"},
	{Name: "managed-fields", Category: rewriteCategory, Default: "fix", Choices: []string{"fix", "all", "keep"},
		Usage: "`fix|all|keep`: relabel managedFields that would break server-side apply, or those of all other " +
			"versions, or none"},
	{Name: "native", Category: rewriteCategory, Default: false,
		Usage: fmt.Sprintf("re-encode objects of built-in kinds too, at the storage versions of Kubernetes 1.%d",
			native.LinkedRelease)},
	{Name: "kubernetes", Category: rewriteCategory,
		Usage: "re-encode objects of built-in kinds too, at the storage versions of Kubernetes `VERSION`, newer or " +
			"older, such as 1.34"},
	{Name: "remove-unserved", Category: rewriteCategory, Default: false,
		Usage: "delete objects of built-in kinds that the release of --native or --kubernetes does not have"},
	{Name: "helm", Category: rewriteCategory, Default: false,
		Usage: "replace versions that are not served in the manifests of Helm releases, as the Helm plugin " +
			"mapkubeapis does"},
	{Name: "rewrap", Category: rewriteCategory, Default: false,
		Usage: "encrypt every value of the snapshot, also of built-in types, with the first provider and key of " +
			"--encryption-config"},
}

func newFromArgs(ctx context.Context, a *transform.Args) (transform.Transform, error) {
	fields := a.String("managed-fields")
	o := Options{
		CRDs: a.StringSlice("crd"), Groups: a.StringSlice("group"), Exclude: a.StringSlice("exclude"),
		To:                a.String("to"),
		KeepManagedFields: fields == "keep", AllManagedFields: fields == "all", Rewrap: a.Bool("rewrap"),
		Helm: a.Bool("helm"),
	}
	if a.String("mode") == "pure" {
		o.Mode = schema.Pure
	}
	var err error
	if err = readRelease(a, &o); err != nil {
		return nil, err
	}
	if a.IsSet("selector") {
		if o.Selector, err = labels.Parse(a.String("selector")); err != nil {
			return nil, transform.Usagef("--selector is %q: %v", a.String("selector"), err)
		}
	}
	if a.IsSet("to") && !a.IsSet("crd") && !a.IsSet("group") && !a.IsSet("selector") {
		return nil, transform.Usagef("--to VERSION changes CustomResourceDefinitions; select them with --crd, " +
			"--group or --selector")
	}
	if o.Rewrap && !a.IsSet("encryption-config") {
		return nil, transform.Usagef("--rewrap takes --encryption-config FILE")
	}
	if o.Mappings, err = readMappings(a.StringSlice("map")); err != nil {
		return nil, err
	}
	if o.Converters, err = readConverters(ctx, a); err != nil {
		return nil, err
	}
	return New(o), nil
}

func readRelease(a *transform.Args, o *Options) (err error) {
	if a.Bool("native") {
		o.Release = native.LinkedRelease
	}
	if a.IsSet("kubernetes") {
		text := a.String("kubernetes")
		if o.Release, err = native.ParseRelease(text); err != nil {
			return transform.Usagef("--kubernetes is %q; %v", text, err)
		}
		if a.Bool("native") && o.Release != native.LinkedRelease {
			return transform.Usagef("--native and --kubernetes %s name two releases", text)
		}
	}
	if o.RemoveUnserved = a.Bool("remove-unserved"); o.RemoveUnserved && o.Release == 0 {
		return transform.Usagef("--remove-unserved takes --native or --kubernetes VERSION")
	}
	return nil
}

// mapping is a value of --map.
var mapping = pattern.New(`^([a-z0-9.-]+)/([a-z0-9-]+)=([a-z0-9-]+)$`)

func readMappings(words []string) (mappings []Mapping, err error) {
	for _, word := range words {
		m := mapping().FindStringSubmatch(word)
		if m == nil || m[2] == m[3] {
			return nil, transform.Usagef("--map is %q; it takes GROUP/OLD=NEW, such as example.com/v1alpha1=v1", word)
		}
		is := Mapping{Group: m[1], Old: m[2], New: m[3]}
		for _, other := range mappings { // only one of both mappings could apply
			if other.Group == is.Group && other.Old == is.Old && other.New != is.New {
				return nil, transform.Usagef("--map takes %s/%s to %s and to %s", is.Group, is.Old, other.New, is.New)
			}
		}
		mappings = append(mappings, is)
	}
	return mappings, nil
}
