package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// definition is the part of a CustomResourceDefinition that is checked.
type definition struct {
	entry      *inspect.Entry
	name       string
	readable   bool
	kind       gvr.GroupKind
	storage    string
	listed     []string // spec.versions
	served     []string
	stored     []string // status.storedVersions
	service    *apiextensionsv1.ServiceReference
	webhook    bool
	deleted    bool
	finalizers []string
}

func (d *doctor) define(key keys.Key, e *inspect.Entry) {
	crd, err := schema.ParseCRD(e.Value)
	if err != nil {
		d.raise(e.Key, codeCRDUnreadable.Because("%s", err))
		plural, group, _ := strings.Cut(key.Name, ".")
		d.definitions[folder{key.Prefix, gvr.GroupResource{Group: group, Resource: plural}}] = &definition{entry: e, name: key.Name}
		return
	}
	obj := crd.Object()
	def := &definition{
		entry: e, name: key.Name, readable: true, kind: crd.GroupKind(), storage: crd.StorageVersion(), stored: crd.StoredVersions(), webhook: crd.Webhook(),
		deleted: obj.DeletionTimestamp != nil, finalizers: obj.Finalizers,
	}
	for _, v := range obj.Spec.Versions {
		def.listed = append(def.listed, v.Name)
		if v.Served {
			def.served = append(def.served, v.Name)
		}
	}
	if def.webhook && obj.Spec.Conversion.Webhook != nil && obj.Spec.Conversion.Webhook.ClientConfig != nil {
		def.service = obj.Spec.Conversion.Webhook.ClientConfig.Service
	}
	d.definitions[folder{key.Prefix, crd.GroupResource()}] = def
}

// eachDefinition visits the definitions by name.
func (d *doctor) eachDefinition(visit func(at folder, def *definition) error) error {
	byName := func(a, b folder) int {
		return strings.Compare(a.prefix+"/"+a.resource.String(), b.prefix+"/"+b.resource.String())
	}
	for _, at := range slices.SortedFunc(maps.Keys(d.definitions), byName) {
		if err := visit(at, d.definitions[at]); err != nil {
			return err
		}
	}
	return nil
}

// orphans are the custom resources that have no definition.
func (d *doctor) orphans() map[string]bool {
	orphans := map[string]bool{}
	for _, at := range d.versions.order {
		if d.definitions[at] == nil {
			orphans[plain(at.resource)] = true
		}
	}
	return orphans
}

// concludeDefinitions compares the stored versions of objects with the definitions.
func (d *doctor) concludeDefinitions(context.Context) error {
	for _, at := range d.versions.order {
		if d.definitions[at] != nil {
			continue
		}
		objects := 0
		d.versions.by[at].each(func(_ string, n int, _ []byte) { objects += n })
		d.raise(d.versions.by[at].first(), codeOrphans.Because(
			"%s of %s without a CustomResourceDefinition: no server serves them", things(objects, "object"), plain(at.resource)).About(objects))
	}
	return d.eachDefinition(func(at folder, def *definition) error {
		if def.readable {
			d.compareVersions(at, def)
		}
		return nil
	})
}

func (d *doctor) compareVersions(at folder, def *definition) {
	there, unread, objects := map[string]int{}, false, 0
	d.versions.of(at).each(func(is string, n int, first []byte) {
		objects += n
		version, ours := def.version(is)
		if !ours {
			unread = true
			d.reportForeign(at, def, is, n, first)
			return
		}
		there[version] = n
		if !slices.Contains(def.listed, version) {
			d.raise(first, codeVersionUnlisted.Because(
				"%s of %s stored at %s, which is no version of the definition: no server reads them, nor lists the kind",
				things(n, "object"), plain(at.resource), version).About(n))
		}
	})
	d.managed.of(at).each(func(apiVersion string, n int, first []byte) {
		version, ours := def.version(apiVersion + " " + def.kind.Kind)
		if ours && !slices.Contains(def.listed, version) {
			d.raise(first, codeManagedVersion.Because(
				"metadata.managedFields of %s of %s name %s, which is no version of the definition",
				things(n, "object"), plain(at.resource), apiVersion).About(n))
		}
	})
	for _, version := range def.stored {
		switch _, is := there[version]; {
		case !slices.Contains(def.listed, version):
			d.raise(def.entry.Key, codeListInvalid.Because("status.storedVersions has %q, which is not in spec.versions", version))
		case !is && !unread && version != def.storage:
			d.raise(def.entry.Key, codeListExtra.Because("status.storedVersions has %q, at which nothing is stored", version))
		}
	}
	for version, n := range there {
		if !slices.Contains(def.stored, version) {
			d.raise(def.entry.Key, codeListLacks.Because(
				"status.storedVersions lacks %q, at which %s stored: nothing keeps the version from being removed", version, are(n, "object")))
		}
	}
	if def.deleted {
		held := d.holders(func(c content) bool { return c.prefix == at.prefix && c.resource == at.resource })
		d.raise(def.entry.Key, codeCRDTerminating.Because(
			"it is being deleted; finalizers: %s; %s left%s", list(def.finalizers), things(objects, "object"), held))
	}
}

// reportForeign reports objects of another group or kind than the definition's. A server fails to
// read those of another group, and serves those of another kind unchanged.
func (d *doctor) reportForeign(at folder, def *definition, is string, n int, first []byte) {
	apiVersion, kind, _ := strings.Cut(is, " ")
	gv, err := gvr.ParseGroupVersion(apiVersion)
	switch {
	case is == "": // encrypted, or reported as undecodable
	case err != nil || gv.Group != def.kind.Group || !slices.Contains(def.listed, gv.Version):
		d.raise(first, codeVersionUnlisted.Because(
			"%s of %s stored as %s, which is no version of the definition: no server reads them, nor lists the kind",
			things(n, "object"), plain(at.resource), is).About(n))
	default:
		d.raise(first, codeKeyMismatch.Because("%s in the folder of %s %s of kind %s", things(n, "object"), plain(at.resource), isOrAre(n), kind).About(n))
	}
}

// version is the version of an "apiVersion kind"; ours is false for another kind than the
// definition's.
func (def *definition) version(is string) (version string, ours bool) {
	apiVersion, kind, _ := strings.Cut(is, " ")
	gv, err := gvr.ParseGroupVersion(apiVersion)
	if err != nil || gv.WithKind(kind).GroupKind() != def.kind {
		return "", false
	}
	return gv.Version, true
}

// concludeConversion checks the webhooks that convert custom resources, but for those at a URL.
func (d *doctor) concludeConversion(ctx context.Context) error {
	return d.eachDefinition(func(at folder, def *definition) error {
		if def.service == nil || len(def.listed) < 2 { // nothing is ever converted between one version
			return nil
		}
		name := def.service.Namespace + "/" + def.service.Name
		is, err := d.service(ctx, at.prefix, def.service.Namespace, def.service.Name)
		switch {
		case err != nil:
			return err
		case is == nil:
			d.raise(def.entry.Key, codeConversionGone.Because("its conversion webhook is Service %s, which is not there", name))
			return nil
		}
		waiting := 0
		d.versions.of(at).each(func(is string, n int, _ []byte) {
			if version, ours := def.version(is); ours && version != def.storage && slices.Contains(def.listed, version) {
				waiting += n
			}
		})
		if waiting > 0 {
			d.raise(def.entry.Key, codeConversionNeeded.Because(
				"%s not at the storage version %s; lists of %s fail until the webhook, Service %s, answers",
				are(waiting, "object"), def.storage, plain(at.resource), name).About(waiting))
		} else if len(def.served) > 1 || len(def.served) == 1 && def.served[0] != def.storage {
			d.raise(def.entry.Key, codeConversion.Because("Service %s converts %s between %s", name, plain(at.resource), strings.Join(def.served, ", ")))
		}
		return nil
	})
}

// are is a number with its noun and verb.
func are(n int, what string) string { return things(n, what) + " " + isOrAre(n) }

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func list(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
