package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/keys"
)

// Codes about custom resources.
var (
	codeCRDUnreadable    = finding.Lookup("crd-unreadable")
	codeVersionUnlisted  = finding.Lookup("version-not-listed")
	codeListInvalid      = finding.Lookup("stored-versions-invalid")
	codeListLacks        = finding.Lookup("stored-versions-lack")
	codeListNeeded       = finding.Lookup("stored-versions-needed")
	codeListExtra        = finding.Lookup("stored-versions-extra")
	codeManagedVersion   = finding.Lookup("managed-fields-version")
	CodeUpdateRefused    = finding.Lookup("update-refused")
	CodeApplyRefused     = finding.Lookup("apply-refused")
	codeHiddenField      = finding.Lookup("hidden-field")
	codeOrphans          = finding.Lookup("orphans")
	codeCRDTerminating   = finding.Lookup("crd-terminating").As(finding.Warning, "")
	codeConversionGone   = finding.Lookup("conversion-service-gone")
	codeConversionNeeded = finding.Lookup("conversion-needed")
	codeConversion       = finding.Lookup("conversion-webhook")
)

// definition is a CustomResourceDefinition without its schemas.
type definition struct {
	stored
	*inspect.Definition
	kind       gvr.GroupKind
	service    *apiextensionsv1.ServiceReference // of the conversion webhook; nil for none
	deleted    bool
	finalizers []string
}

// define reads the definitions, before the objects of their types.
func define(d *doctor) error {
	for _, dir := range d.layouts.Dirs(keys.DefinitionType()) {
		see := func(_ context.Context, e *inspect.Entry) look { return lookAt(e) }
		err := each(d, dir, see, func(e *inspect.Entry, l *look, _ bool) error {
			key, err := e.ParseKey()
			if err == nil && key.Resource == keys.DefinitionType() && isKubernetes(e) {
				addDefinition(d, stored{key, e}, l.readable())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func addDefinition(d *doctor, o stored, readable bool) {
	crd, err := schema.ParseCRD(o.entry.Value)
	if err != nil || !readable { // checkRecord reports a value that is no object
		if readable {
			d.raise(o.entry.Key, codeCRDUnreadable, "%s", err)
		}
		plural, group, _ := strings.Cut(o.Name, ".")
		unread := &inspect.Definition{Error: "unreadable"}
		*d.definitions.at(folder{o.Prefix, gvr.GroupResource{Group: group, Resource: plural}}) = definition{stored: o,
			Definition: unread}
		return
	}
	is := crd.Object()
	def := definition{
		stored: o, Definition: inspect.Define(crd), kind: crd.GroupKind(), deleted: is.DeletionTimestamp != nil,
		finalizers: is.Finalizers,
	}
	if by := is.Spec.Conversion; crd.Webhook() && by.Webhook != nil && by.Webhook.ClientConfig != nil {
		def.service = by.Webhook.ClientConfig.Service
	}
	*d.definitions.at(folder{o.Prefix, crd.GroupResource()}) = def
}

// parse parses an apiVersion and kind. ours reports whether the kind is the definition's, listed
// whether the version is in the definition.
func (def *definition) parse(stored string) (version string, ours, listed bool) {
	apiVersion, kind, _ := strings.Cut(stored, " ")
	gv, err := gvr.ParseGroupVersion(apiVersion)
	ours = err == nil && gv.WithKind(kind).GroupKind() == def.kind
	listed = err == nil && gv.Group == def.kind.Group && slices.Contains(def.Listed, gv.Version)
	return gv.Version, ours, listed
}

// orphans returns the resources of objects without a definition.
func (d *index) orphans() map[gvr.GroupResource]bool {
	if d.undefined == nil {
		d.undefined = map[gvr.GroupResource]bool{}
		for at := range d.versions.all() {
			if d.definitions.by[at] == nil {
				d.undefined[at.resource] = true
			}
		}
	}
	return d.undefined
}

// checkOrphans reports objects without a definition.
func checkOrphans(d *doctor) error {
	for at, versions := range d.versions.all() {
		if d.definitions.by[at] == nil {
			d.raiseMany(versions.total, codeOrphans, "object",
				"%s of %s without a CustomResourceDefinition: no server serves them", plain(at.resource))
		}
	}
	return nil
}

// checkVersionsOfObjects compares the versions of stored objects with their definitions.
func checkVersionsOfObjects(d *doctor) error {
	for at, def := range d.definitions.all() {
		if def.Error != "" {
			continue
		}
		checkStoredVersions(d, at, def)
		for apiVersion, c := range d.managed.at(at).all() {
			if _, ours, listed := def.parse(apiVersion + " " + def.kind.Kind); ours && !listed {
				d.raiseMany(*c, codeManagedVersion, "object",
					"metadata.managedFields of %s of %s name %s, which is no version of the definition",
					plain(at.resource), apiVersion)
			}
		}
	}
	return nil
}

// checkDefinitionsStay says why terminating definitions stay.
func checkDefinitionsStay(d *doctor) error {
	for at, def := range d.definitions.all() {
		if !def.deleted {
			continue
		}
		held := d.holders(func(h hold) bool { return folder{h.prefix, h.resource} == at })
		if at.resource.Group == calicoV1 {
			hint, err := calicoMoves(d, at.prefix)
			if err != nil {
				return err
			}
			held += hint
		}
		d.raise(def.entry.Key, codeCRDTerminating, "it is being deleted; finalizers: %s; %s left%s",
			list(def.finalizers), phrase.Count(d.versions.at(at).total.objects, "object"), held)
	}
	return nil
}

// checkStoredVersions checks the stored versions of objects, their kind, and status.storedVersions.
func checkStoredVersions(d *doctor, at folder, def *definition) {
	there, unread := map[string]int{}, d.unread[plain(at.resource)]
	for stored, c := range d.versions.at(at).all() {
		version, ours, listed := def.parse(stored)
		as := "as " + stored
		if ours {
			as, there[version] = "at "+version, c.objects
		}
		unread = unread || !ours
		switch {
		case stored == "": // undecryptable, or reported as undecodable
		case !listed:
			d.raiseMany(*c, codeVersionUnlisted, "object",
				"%s of %s stored %s, which is no version of the definition: no server reads them, nor lists the kind%s",
				plain(at.resource), as,
				def.mapping(version, ours))
		case !ours:
			_, kind, _ := strings.Cut(stored, " ")
			d.raiseMany(*c, finding.Undecodable, "object", "%s in the folder of %s %s of kind %s", plain(at.resource),
				isOrAre(c.objects), kind)
		}
	}
	for i, version := range def.StoredVersions {
		switch _, is := there[version]; {
		case !slices.Contains(def.Listed, version):
			d.raise(def.entry.Key, codeListInvalid, "status.storedVersions[%d]: %q must appear in spec.versions, and "+
				"is not there", i, version)
		case is && version != def.StorageVersion:
			d.raise(def.entry.Key, codeListNeeded, "status.storedVersions[%d] is %q, at which %s %s stored: an "+
				"update that drops it is refused", i, version,
				phrase.Count(there[version], "object"), isOrAre(there[version]))
		case !is && !unread && version != def.StorageVersion:
			d.raise(def.entry.Key, codeListExtra, "status.storedVersions has %q, at which nothing is stored", version)
		}
	}
	for version, n := range there {
		if !slices.Contains(def.StoredVersions, version) {
			d.raise(def.entry.Key, codeListLacks, "status.storedVersions lacks %q, at which %s %s stored: nothing "+
				"keeps the version from being removed",
				version, phrase.Count(n, "object"), isOrAre(n))
		}
	}
}

// mapping returns the flag of "migrate storage-versions" for objects of the kind at a removed
// version.
func (def *definition) mapping(version string, ours bool) string {
	if !ours || def.StorageVersion == "" {
		return ""
	}
	return "; --map " + def.kind.Group + "/" + version + "=" + def.StorageVersion
}

// checkConversion checks conversion webhooks in the cluster.
func checkConversion(d *doctor) error {
	for at, def := range d.definitions.all() {
		if def.service == nil || len(def.Listed) < 2 { // a single version needs no conversion
			continue
		}
		name := def.service.Namespace + "/" + def.service.Name
		svc, err := d.storage(at.prefix).Service(d.ctx, def.service.Namespace, def.service.Name)
		if err != nil {
			return err
		}
		if svc == nil {
			d.raise(def.entry.Key, codeConversionGone, "its conversion webhook is Service %s, which is not there", name)
			continue
		}
		if machines.Outside(svc) {
			continue
		}
		waiting := count{first: def.entry.Key}
		for stored, c := range d.versions.at(at).all() {
			if version, ours, listed := def.parse(stored); ours && listed && version != def.StorageVersion {
				waiting.objects += c.objects
			}
		}
		if waiting.objects > 0 {
			d.raiseMany(waiting, codeConversionNeeded, "object",
				"%s %s not at the storage version %s; lists of %s fail until the webhook, Service %s, answers",
				isOrAre(waiting.objects), def.StorageVersion, plain(at.resource), name)
		} else if len(def.Served) > 1 || len(def.Served) == 1 && def.Served[0] != def.StorageVersion {
			d.raise(def.entry.Key, codeConversion, "Service %s converts %s between %s", name, plain(at.resource),
				list(def.Served))
		}
	}
	return nil
}

// writer returns the definition of a type and its storage version, nil if no server serves the
// type. The schemas are parsed for the first object.
type writer func() (*schema.CRD, *schema.Version)

func (def *definition) writer() writer {
	return sync.OnceValues(func() (*schema.CRD, *schema.Version) {
		crd, err := schema.ParseCRD(def.entry.Value)
		if err != nil {
			return nil, nil // reported by addDefinition
		}
		storage, err := crd.Version(def.StorageVersion)
		if err != nil {
			return nil, nil // no server serves it
		}
		return crd, storage
	})
}

// check checks whether servers accept writes of an object.
func (w writer) check(ctx context.Context, e *inspect.Entry) []*finding.Finding {
	if crd, storage := w(); storage != nil {
		return checkWrite(ctx, crd, storage, e)
	}
	return nil
}

// mostSchemas limits the text of definitions parsed at once, in bytes.
const mostSchemas = 2 << 20

// newWriters returns the definitions whose objects are checked in the pass over all records, up to
// mostSchemas. Each other definition, in unwritten, gets its own pass.
func newWriters(d *doctor) writers {
	reported := []*finding.Code{CodeUpdateRefused, CodeApplyRefused, codeHiddenField} // by checkWrite
	if !slices.ContainsFunc(reported, func(c *finding.Code) bool { return !slices.Contains(d.Ignored, c.Name) }) {
		return nil
	}
	size, ws := 0, writers{}
	for at, def := range d.definitions.all() {
		if size += len(def.entry.Value); size <= mostSchemas {
			ws[at] = def.writer()
		} else {
			d.unwritten = append(d.unwritten, at)
		}
	}
	return ws
}

type writers map[folder]writer

// check checks an object of one of the definitions.
func (ws writers) check(ctx context.Context, e *inspect.Entry) []*finding.Finding {
	key, err := e.ParseKey()
	if w := ws[folder{key.Prefix, key.Resource}]; err == nil && w != nil && isKubernetes(e) {
		return w.check(ctx, e)
	}
	return nil
}

// checkWrites reports custom resources that servers read but do not accept in writes, for the
// definitions in unwritten.
func checkWrites(d *doctor) error {
	for _, at := range d.unwritten {
		w := d.definitions.at(at).writer()
		dir := keys.Kubernetes{Prefix: at.prefix}.Dir(at.resource)
		err := each(d, dir, w.check, func(e *inspect.Entry, found *[]*finding.Finding, ruled bool) error {
			d.addWrites(e, *found, ruled)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addWrites adds the findings of checkWrite.
func (d *doctor) addWrites(e *inspect.Entry, found []*finding.Finding, ruled bool) {
	if !ruled {
		d.raise(e.Key, CodeUpdateRefused, "its updates cannot be checked: the schemas and rules of "+
			"CustomResourceDefinitions cost %s", &d.rules)
		return
	}
	for _, f := range found {
		d.Add(f)
	}
}

// checkWrite checks whether servers accept writes of an object. Unreadable objects are reported
// elsewhere.
func checkWrite(
	ctx context.Context, crd *schema.CRD, storage *schema.Version, e *inspect.Entry,
) (found []*finding.Finding) {
	key, err := e.ParseKey()
	if err == nil && e.Undecryptable == nil && crd.Accepts(ctx, e.Value, key.Namespace, key.Name) {
		return nil
	}
	obj, _, err := encoding.DecodeObject(e.Value)
	if err != nil || e.Undecryptable != nil || obj["kind"] != crd.GroupKind().Kind {
		return nil
	}
	raise := func(code *finding.Code, format string, args ...any) {
		found = append(found, code.Because(format, args...).At(string(e.Key)))
	}
	// Rewrite returns its error
	dropped, _ := crd.Begin(obj)
	dropped = slices.DeleteFunc(dropped, func(path string) bool { return strings.HasSuffix(path, "=null") }) // no loss
	if len(dropped) > 0 {
		raise(codeHiddenField, "the schema of its version lacks %s", finding.List(dropped))
	}
	_, err = crd.Rewrite(obj)
	if errors.Is(err, schema.ErrTooLarge) {
		raise(CodeUpdateRefused, "its updates cannot be checked: %s", err)
	}
	if err != nil {
		return found
	}
	errs := storage.Refused(ctx, obj)
	if reason := schema.Unchecked(errs); reason != "" {
		raise(CodeUpdateRefused, "its updates cannot be checked: %s", reason)
		return found
	}
	if wrong := schema.Fields(errs); len(wrong) > 0 {
		raise(CodeUpdateRefused, "every update is refused for %s", strings.Join(wrong[:min(len(wrong), 20)], ", "))
	}
	if err := crd.CheckApply(obj); err != nil && !errors.Is(err, schema.ErrNoVersion) { // a managed-fields-version
		raise(CodeApplyRefused, "every server-side apply is refused: %s", err)
	}
	return found
}
