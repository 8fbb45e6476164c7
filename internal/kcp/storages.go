package kcp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// LogicalClusterKey returns the key of a LogicalCluster on a shard with the storage prefix. A
// logical cluster lives on the shard if this key exists.
func LogicalClusterKey(prefix, name string) []byte {
	return keys.KCPShard{Prefix: prefix}.Format(keys.Key{Resource: LogicalClusterType, Custom: true, Cluster: name,
		Name: logicalCluster})
}

// shardPass is the part of a pass for one shard.
type shardPass struct {
	*pass
	*Shard
}

func (s *shardPass) add(key keys.Key, e *inspect.Entry) (examination, error) {
	c, o := s.clusters[key.Cluster], s.orphans[key.Cluster]
	if c == nil && o == nil {
		if err := s.classify(key.Cluster); err != nil {
			return examination{}, err
		}
		c, o = s.clusters[key.Cluster], s.orphans[key.Cluster]
	}
	if o != nil {
		o.Keys = append(o.Keys, string(e.Key))
		return o.Records.add(s.pass, key, e, reading{})
	}
	return c.Records.add(s.pass, key, e, s.reads(c, key, string(e.Key)))
}

// classify decides at the first key of a logical cluster whether the logical cluster lives on the
// shard.
func (s *shardPass) classify(name string) error {
	lives, err := onEveryShard(name), error(nil)
	if !lives {
		lives, err = s.reader.Has(s.ctx, LogicalClusterKey(s.Prefix, name))
	}
	name = strings.Clone(name) // a substring would keep the whole key in memory
	if lives {
		s.clusters[name] = &Cluster{Name: name, System: IsSystem(name)}
	} else {
		s.orphans[name] = &Orphan{Name: name}
	}
	return err
}

func (s *shardPass) reads(c *Cluster, key keys.Key, stored string) reading {
	builtin := !key.Custom && key.Identity == ""
	switch gr := key.Resource; {
	case builtin && gr == keys.DefinitionType() && (c.Name == BoundCRDs || c.Name == SystemCRDs):
		d := &Definition{Key: stored, Name: key.Name, Problem: "it cannot be decrypted"}
		into := &s.System
		if c.Name == BoundCRDs {
			into, s.definitions[key.Name] = &s.Definitions, d
		}
		*into = append(*into, d)
		return d.reading()
	case key.Custom && gr == LogicalClusterType && key.Namespace == "" && key.Name == logicalCluster:
		return c.reading()
	case key.Custom && gr == BindingType:
		return c.readBinding(key, s.names)
	case key.Custom && gr == ExportType:
		return readExport(key, &c.Exports)
	case key.Identity != "" && gr == WorkspaceType:
		c.Workspaces = append(c.Workspaces, Workspace{Key: stored, Name: key.Name, Identity: s.names.of(key.Identity)})
		return c.readWorkspace(len(c.Workspaces) - 1)
	case key.Identity != "" && gr == shardType && c.Name == rootCluster:
		return readShard(key, &s.Registered)
	}
	return reading{}
}

func (s *shardPass) finish() *Shard {
	out := s.Shard
	if c := s.clusters[SystemShard]; c != nil {
		out.Name = c.ShardName
		out.Partial = c.tally[Resource{Resource: TypeName(LogicalClusterType), Custom: true}] == nil
	}
	out.Clusters = slices.SortedFunc(maps.Values(s.clusters),
		func(a, b *Cluster) int { return strings.Compare(a.Name, b.Name) })
	each(out.Clusters, func(c **Cluster) { (*c).finish() })
	for _, c := range out.Clusters {
		if _, several := out.paths[c.Path]; several {
			out.paths[c.Path] = nil
		} else if c.Path != "" {
			out.paths[c.Path] = c
		}
		if c.Owner != nil {
			out.children[c.Owner.Cluster] = append(out.children[c.Owner.Cluster], c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.orphans)) {
		s.orphans[name].finish()
		out.Orphans = append(out.Orphans, s.orphans[name])
	}
	s.workspaces()
	slices.SortStableFunc(out.Definitions, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(out.System, func(a, b *Definition) int {
		return cmp.Or(compareResources(a.Resource, b.Resource), strings.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(out.Registered, compareRegistered)
	return out
}

// workspaces sorts the Workspaces of each logical cluster, and drops objects of exported types with
// the same resource name. The binding of system:shard has the identity of the root's own APIExport.
func (s *shardPass) workspaces() {
	own := &s.WorkspaceIdentity
	if c := s.clusters[SystemShard]; c != nil {
		for b, bound := range c.Bound() {
			if b.Export.Cluster == rootCluster && bound.Resource == WorkspaceType {
				*own = bound.Identity
			}
		}
	}
	for _, c := range s.Clusters {
		if *own != "" {
			c.Workspaces = slices.DeleteFunc(c.Workspaces, func(w Workspace) bool { return w.Identity != *own })
		}
		slices.SortStableFunc(c.Workspaces, func(a, b Workspace) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key))
		})
	}
}

// finish sorts the lists of a logical cluster, except Workspaces.
func (c *Cluster) finish() {
	c.Records.finish()
	slices.SortStableFunc(c.Bindings, func(a, b Binding) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(c.Exports, func(a, b Export) int { return strings.Compare(a.Name, b.Name) })
}

// each calls work for the elements of a list, in parallel chunks.
func each[T any](all []T, work func(*T)) {
	var running sync.WaitGroup
	for part := range slices.Chunk(all, 128) {
		running.Go(func() {
			for i := range part {
				work(&part[i])
			}
		})
	}
	running.Wait()
}

func compareRegistered(a, b RegisteredShard) int { return strings.Compare(a.Name, b.Name) }

// cachePass is the part of a pass for one cache.
type cachePass struct {
	*pass
	cache  *Cache
	copies map[keys.Key]*Copy // by shard and logical cluster
}

func (c *cachePass) add(key keys.Key, e *inspect.Entry) (examination, error) {
	if key.Shard == cacheServer {
		return c.cache.Own.add(c.pass, key, e, reading{})
	}
	of := keys.Key{Shard: key.Shard, Cluster: key.Cluster}
	if c.copies[of] == nil {
		c.copies[of] = &Copy{Prefix: c.cache.Prefix, Shard: key.Shard, Cluster: key.Cluster}
	}
	copied := c.copies[of]
	copied.Keys = append(copied.Keys, string(e.Key))
	if key.Custom && key.Resource == ExportType {
		copied.Exports = append(copied.Exports, strings.Clone(key.Name))
	}
	return copied.Records.add(c.pass, key, e, c.reads(key))
}

func (c *cachePass) reads(key keys.Key) reading {
	switch gr := key.Resource; {
	case key.Custom && gr == ExportType:
		return readExport(key, &c.cache.Exports)
	case key.Custom && gr == shardType && key.Cluster == rootCluster:
		return readShard(key, &c.cache.Registered)
	}
	return reading{}
}

func (c *cachePass) finish() *Cache {
	c.cache.Own.finish()
	c.cache.Copies = slices.SortedFunc(maps.Values(c.copies), func(a, b *Copy) int {
		return cmp.Or(strings.Compare(a.Shard, b.Shard), strings.Compare(a.Cluster, b.Cluster))
	})
	for _, copied := range c.cache.Copies {
		copied.finish()
	}
	slices.SortStableFunc(c.cache.Exports, func(a, b Export) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(c.cache.Registered, compareRegistered)
	return c.cache
}

// object has the fields of all kinds that describe logical clusters. Unknown fields are skipped; a
// field of a wrong type is an error.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		UID               string            `json:"uid"`
		DeletionTimestamp string            `json:"deletionTimestamp"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Owner     *Owner `json:"owner"` // of a LogicalCluster
		Reference struct {
			Export struct {
				Path string `json:"path"`
				Name string `json:"name"`
			} `json:"export"`
		} `json:"reference"` // of an APIBinding
		Cluster     string `json:"cluster"`     // of a Workspace
		ExternalURL string `json:"externalURL"` // of a Shard
		Group       string `json:"group"`       // of a CustomResourceDefinition, like the next fields
		Names       struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Version  string `json:"version"` // of v1beta1
		Versions []struct {
			Name string `json:"name"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Phase         string          `json:"phase"`                // of a LogicalCluster
		ExportCluster string          `json:"apiExportClusterName"` // of an APIBinding
		Bound         []boundResource `json:"boundResources"`       // of an APIBinding
		Identity      string          `json:"identityHash"`         // of an APIExport
		Stored        []string        `json:"storedVersions"`       // of a CustomResourceDefinition
	} `json:"status"`
}

type boundResource struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Schema   struct {
		Name     string `json:"name"`
		UID      string `json:"UID"`
		Identity string `json:"identityHash"`
	} `json:"schema"`
	StorageVersions []string `json:"storageVersions"`
}

// objectFields reads only these annotations and labels.
var objectFields = encoding.FieldsOf[object](AnnotationCluster, AnnotationCopied, AnnotationShard, AnnotationMigrating,
	LabelRegion, annotationPath, annotationInactive, annotationInactiveBefore, annotationSchemaCluster,
	annotationSchemaName)

// decodeObject decodes an object of a kind. No error quotes the value.
func decodeObject(kind string, value []byte) (*object, error) {
	o, err := objectFields.Decode(value)
	switch {
	case err != nil:
		return nil, fmt.Errorf("no %s: %w", kind, err)
	case o.Kind != kind:
		return nil, fmt.Errorf("no %s", kind)
	}
	return o, nil
}

func (c *Cluster) reading() reading {
	return reading{kind: "LogicalCluster", take: func(o *object) {
		annotations := o.Metadata.Annotations
		c.Path, c.ShardName = annotations[annotationPath], annotations[AnnotationShard]
		c.Migrating = annotations[AnnotationMigrating]
		c.Inactive = annotations[annotationInactive] == "true" || annotations[annotationInactiveBefore] == "true"
		c.Phase, c.UID, c.Terminating, c.Owner = o.Status.Phase, o.Metadata.UID, o.Metadata.DeletionTimestamp,
			o.Spec.Owner
	}}
}

// readBinding reads an APIBinding, v1alpha1 or v1alpha2.
func (c *Cluster) readBinding(key keys.Key, names names) reading {
	return reading{kind: "APIBinding", take: func(o *object) {
		export := o.Spec.Reference.Export
		b := Binding{
			Name: strings.Clone(key.Name),
			Export: ExportRef{
				Cluster: names.of(o.Status.ExportCluster), Path: names.of(export.Path), Name: names.of(export.Name),
			},
			Bound: make([]Bound, len(o.Status.Bound)),
		}
		for i, r := range o.Status.Bound {
			for at, version := range r.StorageVersions {
				r.StorageVersions[at] = names.of(version)
			}
			b.Bound[i] = Bound{
				Resource: names.resource(schema.GroupResource{Group: r.Group, Resource: r.Resource}),
				Schema:   names.of(r.Schema.Name), UID: names.of(r.Schema.UID), Identity: names.of(r.Schema.Identity),
				StorageVersions: r.StorageVersions, Virtual: len(r.StorageVersions) == 0,
			}
		}
		c.Bindings = append(c.Bindings, b)
	}}
}

// readExport reads an APIExport, v1alpha1 or v1alpha2.
func readExport(key keys.Key, into *[]Export) reading {
	return reading{kind: "APIExport", take: func(o *object) {
		*into = append(*into, Export{Cluster: key.Cluster, Name: key.Name, Identity: o.Status.Identity})
	}}
}

// readWorkspace reads the Workspace at an index of c.Workspaces. A pointer to the element would not
// do: the slice may be reallocated before the read.
func (c *Cluster) readWorkspace(i int) reading {
	return reading{kind: "Workspace", take: func(o *object) {
		w := &c.Workspaces[i]
		w.UID, w.Cluster, w.ShardName = o.Metadata.UID, o.Spec.Cluster, o.Metadata.Annotations[AnnotationShard]
		w.Region = o.Metadata.Labels[LabelRegion]
	}}
}

func readShard(key keys.Key, into *[]RegisteredShard) reading {
	return reading{kind: "Shard", take: func(o *object) {
		*into = append(*into, RegisteredShard{key.Name, o.Metadata.Labels[LabelRegion], o.Spec.ExternalURL})
	}}
}

func (d *Definition) reading() reading {
	return reading{kind: "CustomResourceDefinition", problem: &d.Problem, take: func(o *object) {
		annotations := o.Metadata.Annotations
		d.Resource = schema.GroupResource{Group: o.Spec.Group, Resource: o.Spec.Names.Plural}
		d.Schema = ExportRef{Cluster: annotations[annotationSchemaCluster], Name: annotations[annotationSchemaName]}
		d.StoredVersions = o.Status.Stored
		for _, v := range o.Spec.Versions {
			d.Versions = append(d.Versions, v.Name)
		}
		if len(d.Versions) == 0 && o.Spec.Version != "" {
			d.Versions = []string{o.Spec.Version}
		}
	}}
}
