package storageversion

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// kind is a CustomResourceDefinition and what becomes of its objects.
type kind struct {
	key    []byte
	name   string // of the CustomResourceDefinition, PLURAL.GROUP
	group  string
	value  []byte      // as it is to be stored, so far
	crd    *schema.CRD // parsed from value; nil where it cannot be
	chosen bool

	before []string // status.storedVersions
	after  []string
	kept   string // why no version was taken from the list

	counts        map[string]*counts // by stored version
	managedFields int                // objects with relabelled entries
	entries       map[string]int     // objects with entries at another version than the storage version, by version
	stored        map[string]int     // objects of a migrated kind by the version they are stored at then, "" for unknown

	stuck string // why the converter of the group is not asked again
}

// counts are objects of one version by what becomes of them.
type counts struct{ found, rewritten, unchanged, refused int }

// at are the counts of a version, "" for objects whose version is unknown.
func (k *kind) at(version string) *counts {
	if k.counts[version] == nil {
		k.counts[version] = &counts{}
	}
	return k.counts[version]
}

func (r *run) load() {
	for e := range r.Live(r.Keys.Dir(keys.DefinitionType())) {
		key, err := r.Keys.Parse(e.Key)
		if err != nil {
			r.Raise(string(e.Key), codeUnknownKey.Because("%v", err))
			continue
		}
		k := &kind{key: e.Key, value: e.Value, name: key.Name, counts: map[string]*counts{}, entries: map[string]int{}, stored: map[string]int{}}
		_, k.group, _ = strings.Cut(key.Name, ".")
		r.kinds = append(r.kinds, k)
		if bad := k.parse(e); bad != nil {
			r.defined.Insert(gvr.ParseGroupResource(k.name))
			if k.chosen = r.opts.names(k.name, k.group); k.chosen { // its labels cannot be read
				r.Raise(string(e.Key), bad)
			}
			continue
		}
		k.group = k.crd.Object().Spec.Group
		k.before, k.chosen = k.crd.StoredVersions(), r.opts.chooses(k.crd)
		k.after = k.before
		r.defined.Insert(k.crd.GroupResource())
	}
	slices.SortFunc(r.kinds, func(a, b *kind) int { return cmp.Compare(string(a.key), string(b.key)) })
}

// parse reads the CustomResourceDefinition, or says why it is of no use.
func (k *kind) parse(e *transform.Entry) *finding.Finding {
	if e.Undecryptable != nil {
		return transform.Unreadable(e.Undecryptable)
	}
	crd, err := schema.ParseCRD(e.Value)
	if err != nil {
		return transform.Unreadable(err)
	}
	name, spec := crd.Object().Name, crd.Object().Spec
	switch f := encoding.Detect(e.Value); {
	case f != encoding.FormatJSON:
		return codeInvalid.Because("it is stored as %s, in which no server writes a CustomResourceDefinition", f)
	case name != k.name:
		return codeInvalid.Because("it names itself %q, unlike its key", name)
	case spec.Names.Plural+"."+spec.Group != k.name:
		return codeInvalid.Because("its plural and group are %q and %q, unlike its name", spec.Names.Plural, spec.Group)
	case keys.IsBuiltin(crd.GroupResource()): // the API server keeps its own objects in the folder of that name
		return codeInvalid.Because("its objects have the name of a resource that is kube-apiserver's own")
	}
	k.crd = crd
	return nil
}

// prepare makes the CustomResourceDefinition ready to encode by. ok is false where its objects have
// to stay as they are.
func (r *run) prepare(k *kind) (ok bool) {
	if to := r.opts.To; to != "" && to != k.crd.StorageVersion() {
		reason, err := r.View.Exposes(r.Ctx, k.key, k.key)
		if r.Failed(err) {
			return false
		}
		if reason != "" { // its objects would move on, and its storage version stay
			r.Raise(string(k.key), transform.CodeWouldBePlaintext.Because("%s", reason))
			return false
		}
	}
	obj := k.crd.Object()
	if obj.UID == "" {
		r.Raise(string(k.key), codeNoUID.Because("it has no uid: an API server serves the objects of one such CustomResourceDefinition as those of another"))
	}
	if obj.DeletionTimestamp != nil {
		r.Raise(string(k.key), codeTerminating.Because("it is being deleted, and its objects with it: storedVersions is not trimmed"))
	}
	bad := k.use(r.opts.To)
	if bad != nil {
		r.Raise(string(k.key), bad)
	}
	return bad == nil
}

// use makes to the storage version, "" for the one it is, and compiles the schemas.
func (k *kind) use(to string) *finding.Finding {
	value, crd := k.value, k.crd
	if slices.ContainsFunc(crd.Object().Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == "StorageMigrating" && c.Status == apiextensionsv1.ConditionTrue
	}) {
		return codeStorageMigrating.Because("its condition StorageMigrating is True: " +
			"the cluster's own migrator would go on from there, and overwrite its status; wait until it is done, take a new snapshot")
	}
	if to != "" && to != crd.StorageVersion() {
		var err error
		if value, err = schema.SetStorageVersion(value, to); errors.Is(err, schema.ErrNoVersion) {
			return codeUnlistedVersion.Because("its storage version cannot become %s: it has %s", to, versions(crd.Object()))
		}
		if err == nil {
			crd, err = schema.ParseCRD(value)
		}
		if err != nil {
			return codeInvalid.Because("%v", err)
		}
	}
	if crd.StorageVersion() == "" {
		return codeInvalid.Because("none of its versions is the storage version")
	}
	for _, v := range crd.Object().Spec.Versions {
		if _, err := crd.Version(v.Name); err != nil {
			return codeInvalid.Because("%v", err)
		}
	}
	k.value, k.crd = value, crd
	return nil
}

func versions(crd *apiextensionsv1.CustomResourceDefinition) string {
	var names []string
	for _, v := range crd.Spec.Versions {
		names = append(names, v.Name)
	}
	return strings.Join(names, ", ")
}

// dirs are the folders of the kind's objects: the first by the names that the server accepted, and
// one by the name of the CustomResourceDefinition where it differs, which the server uses once it
// accepts it.
func (r *run) dirs(k *kind) [][]byte {
	named := r.Keys.Dir(gvr.ParseGroupResource(k.name))
	if k.crd == nil {
		return [][]byte{named}
	}
	dirs := [][]byte{r.Keys.Dir(k.crd.GroupResource())}
	if !bytes.Equal(named, dirs[0]) {
		dirs = append(dirs, named)
	}
	return dirs
}

// storageVersion is empty where it is unknown.
func (k *kind) storageVersion() string {
	if k.crd == nil {
		return ""
	}
	return k.crd.StorageVersion()
}

// owns says whether an object of that group and kind belongs in the folder.
func (k *kind) owns(gk gvr.GroupKind) bool {
	return k.crd == nil && gk.Group == k.group || k.crd != nil && gk == k.crd.GroupKind()
}

// versionOf is the version that a value of the kind is stored at, "" for an unknown one.
func (k *kind) versionOf(e *transform.Entry) string {
	value, err := e.ParseValue()
	if err != nil || !k.owns(value.GVK.GroupKind()) {
		return ""
	}
	return value.GVK.Version
}

// lists says whether an API server can read objects of the version.
func (k *kind) lists(version string) bool {
	_, err := k.crd.Version(version)
	return err == nil
}
