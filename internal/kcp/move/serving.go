package move

import (
	"errors"
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// storedType is the type of stored objects in a logical cluster: under the identity of an
// APIExport, or none.
type storedType struct {
	Cluster  string
	Resource apischema.GroupResource
	identity string
}

// Serving finds the definition with which kcp reads a custom resource on the destination, in the
// order of kcp pkg/server/apiextensions.go: for types of kcp the shard's own definition, for bound
// types the definition in system:bound-crds, for other types the logical cluster's own definition.
type Serving struct {
	system map[apischema.GroupResource]*kcp.Definition
	Bound  map[string]*kcp.Definition // by UID: definitions of the shard, and added definitions
	own    map[storedType][]string    // versions; without identity
	uids   map[storedType]string      // of bound types
	Unfit  map[string]string          // why a definition of the origin was not added, by UID
	// Undecryptable has the logical clusters with undecryptable definitions; kcp.SystemCRDs for
	// definitions of the shard.
	Undecryptable map[string]bool
	Unreadable    []*Unreadable // in the order of the records
	found         map[Unreadable]*Unreadable
}

// Unreadable is a reason why records of a type cannot be read on the destination.
type Unreadable struct {
	storedType
	Code    *finding.Code
	Version string
	Key     string // of the first record
	Records int
}

// newServing returns a Serving with the definitions of a shard.
func newServing(shard *kcp.Shard) *Serving {
	s := &Serving{
		system: map[apischema.GroupResource]*kcp.Definition{}, Bound: map[string]*kcp.Definition{},
		own: map[storedType][]string{}, uids: map[storedType]string{}, found: map[Unreadable]*Unreadable{},
		Unfit: map[string]string{}, Undecryptable: map[string]bool{},
	}
	for _, def := range shard.System {
		s.system[def.Resource] = def
		if def.Problem != "" {
			s.Undecryptable[kcp.SystemCRDs] = true
		}
	}
	for _, def := range shard.Definitions {
		s.Bound[def.Name] = def
	}
	return s
}

func typeOf(key keys.Key) storedType { return storedType{key.Cluster, key.Resource, key.Identity} }

// UID returns the name of the bound definition of a key's type; "" for none.
func (s *Serving) UID(key keys.Key) string { return s.uids[typeOf(key)] }

// Bind adds the bound types of a logical cluster.
func (s *Serving) Bind(c *kcp.Cluster) {
	for _, bound := range c.Bound() {
		s.uids[storedType{c.Name, bound.Resource, bound.Identity}] = bound.UID
	}
}

// Define adds a logical cluster's own definition. An unreadable definition is ignored.
func (s *Serving) Define(key keys.Key, value []byte) {
	crd, err := schema.ParseCRD(value)
	if err != nil {
		return
	}
	of := storedType{Cluster: key.Cluster, Resource: crd.GroupResource()}
	s.own[of] = append(s.own[of], versionsOf(crd)...)
}

func versionsOf(crd *schema.CRD) (names []string) {
	for _, v := range crd.Object().Spec.Versions {
		names = append(names, v.Name)
	}
	return names
}

// Versions returns the versions of a type, or the code why the type is not served. Both are nil for
// an unknown type.
func (s *Serving) Versions(key keys.Key) (versions []string, code *finding.Code) {
	of := typeOf(key)
	switch def := s.system[key.Resource]; {
	case key.Identity != "":
		if def := s.Bound[s.uids[of]]; def != nil {
			return def.Versions, nil
		}
		return nil, nil // not bound any more, or without its definition, which is reported once
	case !key.Custom:
		return nil, nil
	case def != nil:
		return def.Versions, nil
	case s.own[of] != nil:
		return s.own[of], nil
	case strings.HasSuffix("."+key.Resource.Group, ".kcp.io"):
		return nil, codeUnserved
	}
	return nil, codeMissingDefinition
}

// Check checks a decrypted record to be written under a key.
func (s *Serving) Check(key keys.Key, to, value []byte) {
	m := Unreadable{storedType: typeOf(key)}
	version, readable := s.read(key, value)
	if !readable {
		m.Code = kcp.CodeUndecodable
		s.note(m, to)
	}
	versions, code := s.Versions(key)
	switch {
	case code != nil:
		m.Code = code
		s.note(m, to)
	case readable && versions != nil && !slices.Contains(versions, version):
		m.Code, m.Version = codeUnlistedVersion, version
		s.note(m, to)
	}
}

// read returns the stored version of an object. A definition that cannot be parsed is unreadable.
func (s *Serving) read(key keys.Key, value []byte) (version string, readable bool) {
	v, _ := encoding.Parse(value)
	err := inspect.CheckValue(key, value)
	if err == nil || errors.Is(err, native.ErrUnknownKind) {
		_, err = encoding.ReadMeta(value)
	}
	if err == nil && key.Resource == keys.DefinitionType() && !key.Custom && key.Identity == "" {
		_, err = schema.ParseCRD(value)
	}
	return v.GVK.Version, err == nil
}

// mergeStored appends to stored the versions of theirs that the definition lists. The other
// versions are unlisted: with one of them in storedVersions no server would accept an update of the
// definition.
func mergeStored(listed, stored, theirs []string) (merged, unlisted []string) {
	merged = slices.Clone(stored)
	for _, version := range theirs {
		switch {
		case slices.Contains(merged, version):
		case slices.Contains(listed, version):
			merged = append(merged, version)
		default:
			unlisted = append(unlisted, version)
		}
	}
	return merged, unlisted
}

func (s *Serving) note(m Unreadable, to []byte) {
	if s.found[m] == nil {
		first := m
		first.Key = string(to)
		s.found[m] = &first
		s.Unreadable = append(s.Unreadable, &first)
	}
	s.found[m].Records++
}
