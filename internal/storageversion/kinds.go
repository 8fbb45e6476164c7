package storageversion

import (
	"bytes"
	"context"
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

// kind is a CustomResourceDefinition and the results for its objects.
type kind struct {
	row   CustomResource // of the report
	key   []byte
	group string
	value []byte      // the value to store, so far
	crd   *schema.CRD // parsed from value; nil if unreadable

	counts  map[string]*transform.KindCount // by stored version
	entries map[string]int                  // objects whose managedFields name another version, by version
	stored  map[string]int                  // objects by their version after the run, "" for unknown
	stuck   string                          // why the converter of the group is not called again
}

// at returns the counts of a version, "" for objects whose version is unknown.
func (k *kind) at(version string) *transform.KindCount {
	if k.counts[version] == nil {
		k.counts[version] = &transform.KindCount{}
	}
	return k.counts[version]
}

// load finds the CustomResourceDefinitions of a storage, and marks the chosen ones.
func (s *storage) load(ctx context.Context) error {
	for e, err := range s.Live(ctx, s.keys.Dir(keys.DefinitionType())) {
		if err != nil {
			return err
		}
		key, err := s.keys.Parse(e.Key)
		if err != nil {
			s.Raise(string(e.Key), codeUnknownKey.Because("%v", err))
			continue
		}
		k := &kind{
			key: e.Key, value: e.Value,
			counts: map[string]*transform.KindCount{}, entries: map[string]int{}, stored: map[string]int{},
			row: CustomResource{Prefix: s.keys.Prefix, CRD: key.Name, Found: map[string]int{}},
		}
		k.row.StoredVersions = StoredVersions{Before: []string{}, After: []string{}}
		_, k.group, _ = strings.Cut(key.Name, ".")
		s.kinds = append(s.kinds, k)
		if bad := k.parse(e); bad != nil {
			if k.row.Chosen = s.opts.names(key.Name, k.group); k.row.Chosen { // the labels are unreadable
				s.Raise(string(e.Key), bad)
			}
			continue
		}
		k.group, k.row.Chosen = k.crd.Object().Spec.Group, s.opts.chooses(k.crd)
		k.row.StoredVersions.Before = append([]string{}, k.crd.StoredVersions()...)
		k.row.StoredVersions.After = k.row.StoredVersions.Before
	}
	slices.SortFunc(s.kinds, func(a, b *kind) int { return bytes.Compare(a.key, b.key) })
	return nil
}

// parse parses the CustomResourceDefinition, or returns why it cannot be used.
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
	case name != k.row.CRD:
		return codeInvalid.Because("it names itself %q, unlike its key", name)
	case spec.Names.Plural+"."+spec.Group != k.row.CRD:
		return codeInvalid.Because("its plural and group are %q and %q, unlike its name", spec.Names.Plural, spec.Group)
	case keys.IsBuiltin(crd.GroupResource()): // the API server keeps its own objects in the folder of that name
		return codeInvalid.Because("its objects have the name of a resource that is kube-apiserver's own")
	}
	k.crd = crd
	return nil
}

// prepare compiles the CustomResourceDefinition for encoding. ok is false if its objects have to
// stay unchanged.
func (s *storage) prepare(ctx context.Context, k *kind) (ok bool, err error) {
	if k.crd == nil {
		return false, nil
	}
	if to := s.opts.To; to != "" && to != k.crd.StorageVersion() {
		reason, err := s.Exposes(ctx, k.key, k.key)
		if err != nil {
			return false, err
		}
		if reason != "" { // otherwise the objects would change, but not the storage version
			s.Raise(string(k.key), transform.CodeWouldBePlaintext.Because("%s", reason))
			return false, nil
		}
	}
	obj := k.crd.Object()
	if obj.UID == "" {
		s.Raise(string(k.key), codeNoUID.Because(
			"it has no uid: an API server serves the objects of one such CustomResourceDefinition as those of another"))
	}
	if obj.DeletionTimestamp != nil {
		s.Raise(string(k.key), codeTerminating.Because(
			"it is being deleted, and its objects with it: storedVersions is not trimmed"))
	}
	if bad := k.compile(s.opts.To); bad != nil {
		s.Raise(string(k.key), bad)
		return false, nil
	}
	return true, nil
}

// compile sets the storage version to to, "" to keep the present version, and compiles the schemas.
func (k *kind) compile(to string) *finding.Finding {
	value, crd := k.value, k.crd
	if slices.ContainsFunc(crd.Object().Status.Conditions,
		func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == "StorageMigrating" && c.Status == apiextensionsv1.ConditionTrue
		}) {
		return codeStorageMigrating.Because("its condition StorageMigrating is True: " +
			"the cluster's own migrator would go on from there, and overwrite its status; wait until it is done, " +
			"take a new snapshot")
	}
	if to != "" && to != crd.StorageVersion() {
		var err error
		if value, err = schema.SetStorageVersion(value, to); errors.Is(err, schema.ErrNoVersion) {
			return codeUnlistedVersion.Because("its storage version cannot become %s: it has %s", to,
				versions(crd.Object()))
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

// resource returns the resource under which the server stores the objects.
func (k *kind) resource() gvr.GroupResource {
	if k.crd == nil {
		return gvr.ParseGroupResource(k.row.CRD)
	}
	return k.crd.GroupResource()
}

// dirs returns the folders of the kind's objects: the folder by the accepted names, and the folder
// by the name of the CustomResourceDefinition, if different. A server uses the second folder once
// it accepts the name.
func (s *storage) dirs(k *kind) [][]byte {
	named := s.keys.Dir(gvr.ParseGroupResource(k.row.CRD))
	return slices.CompactFunc([][]byte{s.keys.Dir(k.resource()), named}, bytes.Equal)
}

// storageVersion returns the storage version; "" if unknown.
func (k *kind) storageVersion() string {
	if k.crd == nil {
		return ""
	}
	return k.crd.StorageVersion()
}

// owns reports whether an object with the given group and kind belongs in the folder.
func (k *kind) owns(gk gvr.GroupKind) bool {
	return k.crd == nil && gk.Group == k.group || k.crd != nil && gk == k.crd.GroupKind()
}

// versionOf returns the stored version of a value of the kind; "" for unknown.
func (k *kind) versionOf(e *transform.Entry) string {
	value, err := e.ParseValue()
	if err != nil || !k.owns(value.GVK.GroupKind()) {
		return ""
	}
	return value.GVK.Version
}

// lists reports whether an API server can read objects of the version.
func (k *kind) lists(version string) bool {
	_, err := k.crd.Version(version)
	return err == nil
}
