package logicalcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/native"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// storedType is a type of a logical cluster as it is stored: by the identity of an APIExport, or by none.
type storedType struct {
	cluster  string
	resource apischema.GroupResource
	identity string
}

// serving tells by which definition kcp reads custom resources on the destination: its own types by those that the shard came with,
// bound ones by that of the APIResourceSchema's UID, all others by the logical cluster's own (kcp pkg/server/apiextensions.go,
// which asks in this order).
type serving struct {
	system map[apischema.GroupResource]*clusters.Definition
	bound  map[string]*clusters.Definition // by UID: the shard's, and those that are brought
	own    map[storedType][]string         // versions; without identity
	uids   map[storedType]string           // of bound types
	unfit  map[string]string               // why a definition of the origin was not brought, by UID
	// closed are the logical clusters that have definitions which no key opens; clusterSystem for those of the shard.
	closed map[string]bool
	// misfits are found in the order of the records.
	misfits []*misfit
	found   map[misfit]*misfit
}

// misfit is a reason why records of a type cannot be read on the destination.
type misfit struct {
	storedType
	code, version string
	key           string // of the first record
	records       int
}

func newServing(d *destination) *serving {
	s := &serving{
		system: map[apischema.GroupResource]*clusters.Definition{}, bound: map[string]*clusters.Definition{},
		own: map[storedType][]string{}, uids: map[storedType]string{}, found: map[misfit]*misfit{},
		unfit: map[string]string{}, closed: map[string]bool{},
	}
	for _, def := range d.shard.System {
		s.system[def.Resource] = def
		if def.Problem != "" {
			s.closed[clusterSystem] = true
		}
	}
	for _, def := range d.shard.Definitions {
		s.bound[def.Name] = def
	}
	return s
}

// bind notes what a logical cluster has bound.
func (s *serving) bind(c *clusters.Cluster) {
	for _, b := range c.Bindings {
		for _, bound := range b.Bound {
			s.uids[storedType{c.Name, bound.Resource, bound.Identity}] = bound.UID
		}
	}
}

// define notes a logical cluster's own definition. One that cannot be read defines nothing.
func (s *serving) define(key keys.Key, value []byte) {
	crd, err := schema.ParseCRD(value)
	if err != nil {
		return
	}
	of := storedType{cluster: key.Cluster, resource: crd.GroupResource()}
	for _, v := range crd.Object().Spec.Versions {
		s.own[of] = append(s.own[of], v.Name)
	}
}

// versions are those that a type is served in, or the code of why it is not. Neither says that nobody knows.
func (s *serving) versions(key keys.Key) (versions []string, code string) {
	of := storedType{key.Cluster, key.Resource, key.Identity}
	switch def := s.system[key.Resource]; {
	case key.Identity != "":
		if def := s.bound[s.uids[of]]; def != nil {
			return def.Versions, ""
		}
		return nil, "" // bound no more, or its definition is missing, which is reported once
	case !key.Custom:
		return nil, ""
	case def != nil:
		return def.Versions, ""
	case s.own[of] != nil:
		return s.own[of], ""
	case strings.HasSuffix("."+key.Resource.Group, ".kcp.io"):
		return nil, codeUnserved
	}
	return nil, codeMissingDefinition
}

// judge looks at a record that comes in under a key; value is decrypted.
func (s *serving) judge(key keys.Key, to, value []byte) {
	m := misfit{storedType: storedType{key.Cluster, key.Resource, key.Identity}}
	version, readable := s.read(key, value)
	if !readable {
		m.code = clusters.CodeUndecodable
		s.note(m, to)
	}
	versions, code := s.versions(key)
	switch {
	case code != "":
		m.code = code
		s.note(m, to)
	case readable && versions != nil && !slices.Contains(versions, version):
		m.code, m.version = codeUnlistedVersion, version
		s.note(m, to)
	}
}

// read returns the version that an object is stored at. A definition of a logical cluster's own that defines nothing counts as none.
func (s *serving) read(key keys.Key, value []byte) (version string, readable bool) {
	v, _ := encoding.Parse(value)
	err := inspect.CheckValue(key, value)
	if err == nil || errors.Is(err, native.ErrUnknownKind) {
		_, err = encoding.ReadMeta(value)
	}
	if err == nil && key.Resource == definitionType() && !key.Custom && key.Identity == "" {
		_, err = schema.ParseCRD(value)
	}
	return v.GVK.Version, err == nil
}

func (s *serving) note(m misfit, to []byte) {
	if s.found[m] == nil {
		first := m
		first.key = string(to)
		s.found[m] = &first
		s.misfits = append(s.misfits, &first)
	}
	s.found[m].records++
}

// perhaps is said where a definition that no key opens may be the one that is missed.
func (s *serving) perhaps(cluster string) string {
	switch {
	case s.closed[cluster]:
		return ", as far as can be told: definitions of that logical cluster are encrypted and stay closed"
	case s.closed[clusterSystem]:
		return ", as far as can be told: definitions of the shard cannot be read"
	}
	return ""
}

// report refuses what was found.
func (s *serving) report(v *transform.View) {
	for _, m := range s.misfits {
		what := fmt.Sprintf("%s of %s in %q", counted(m.records, "record"), m.resource, m.cluster)
		switch m.code {
		case clusters.CodeUndecodable:
			v.Warn(m.key, m.code, what+" cannot be read, and stored as it is")
			continue
		case codeUnlistedVersion:
			what += fmt.Sprintf(": stored at version %q, which their definition here does not list", m.version)
		case codeUnserved:
			what += ": the kcp of this shard has no such type" + s.perhaps(m.cluster)
		default:
			what += ": nothing defines the type, neither in its own logical cluster nor for the whole shard" + s.perhaps(m.cluster)
		}
		v.GoOn(m.key, m.code, what)
	}
}

// defineOwn notes the definitions that lie in logical clusters themselves.
func (s *serving) defineOwn(ctx context.Context, o *origin, of func(cluster string) bool) error {
	for r, err := range o.definitions(ctx) {
		if err != nil {
			return err
		}
		if !of(r.key.Cluster) {
			continue
		}
		if err := o.reader.Open(ctx, r.Entry); err != nil {
			return err
		}
		if r.Sealed != nil {
			s.closed[r.key.Cluster] = true
			continue
		}
		s.define(r.key, r.Value)
	}
	return nil
}
