package clusters

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
)

// header is the common part of all objects.
type header struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metaJSON `json:"metadata"`
}

type metaJSON struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	DeletionTimestamp string            `json:"deletionTimestamp"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
}

func (h *header) head() *header { return h }

// headed is a pointer to a struct with a header.
type headed[T any] interface {
	*T
	head() *header
}

// decoding reads an object of a kind. Unknown fields are skipped, fields of a wrong type are an
// error. No error quotes the value.
func decoding[T any, P headed[T]](kind string, fields encoding.Fields[T], took func(o P)) reading {
	var o P
	decode := func(value []byte) (metadata, error) {
		decoded, err := fields.Decode(value)
		if err != nil {
			return metadata{}, fmt.Errorf("no %s: %w", kind, err)
		}
		o = decoded
		h := o.head()
		if h.Kind != kind {
			return metadata{}, fmt.Errorf("no %s", kind)
		}
		return metadata{h.Metadata.Name, h.Metadata.Namespace, h.Metadata.Annotations}, nil
	}
	return reading{decode, func() { took(o) }}
}

// The fields that are read of each kind.
var (
	logicalClusterFields = fieldsOf[logicalClusterJSON](annotationPath, AnnotationShard, AnnotationMigrating, annotationInactive, annotationInactiveBefore)
	bindingFields        = fieldsOf[bindingJSON]()
	exportFields         = fieldsOf[exportJSON]()
	workspaceFields      = fieldsOf[workspaceJSON](AnnotationShard, labelRegion)
	shardFields          = fieldsOf[shardJSON](labelRegion)
	definitionFields     = fieldsOf[definitionJSON](annotationSchemaCluster, annotationSchemaName)
)

// fieldsOf reads these annotations and labels alone, and those that repeat a part of the key.
func fieldsOf[T any](named ...string) encoding.Fields[T] {
	return encoding.FieldsOf[T](append(named, annotationCluster, annotationCopied)...)
}

type logicalClusterJSON struct {
	header `json:",inline"`
	Spec   struct {
		Owner *Owner `json:"owner"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

func (c *Cluster) reading() reading {
	return decoding("LogicalCluster", logicalClusterFields, func(o *logicalClusterJSON) {
		annotations := o.Metadata.Annotations
		c.Path, c.ShardName, c.Migrating = annotations[annotationPath], annotations[AnnotationShard], annotations[AnnotationMigrating]
		c.Inactive = annotations[annotationInactive] == "true" || annotations[annotationInactiveBefore] == "true"
		c.Phase, c.UID, c.Terminating, c.Owner = o.Status.Phase, o.Metadata.UID, o.Metadata.DeletionTimestamp, o.Spec.Owner
	})
}

// readBinding reads an APIBinding, v1alpha1 or v1alpha2.
func (c *Cluster) readBinding(key keys.Key, names names) reading {
	return decoding("APIBinding", bindingFields, func(o *bindingJSON) {
		export := o.Spec.Reference.Export
		b := Binding{
			Name:   strings.Clone(key.Name),
			Export: ExportRef{Cluster: names.of(o.Status.Cluster), Path: names.of(export.Path), Name: names.of(export.Name)},
			Bound:  make([]Bound, len(o.Status.Bound)),
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
	})
}

type bindingJSON struct {
	header `json:",inline"`
	Spec   struct {
		Reference struct {
			Export struct {
				Path string `json:"path"`
				Name string `json:"name"`
			} `json:"export"`
		} `json:"reference"`
	} `json:"spec"`
	Status struct {
		Cluster string `json:"apiExportClusterName"`
		Bound   []struct {
			Group    string `json:"group"`
			Resource string `json:"resource"`
			Schema   struct {
				Name     string `json:"name"`
				UID      string `json:"UID"`
				Identity string `json:"identityHash"`
			} `json:"schema"`
			StorageVersions []string `json:"storageVersions"`
		} `json:"boundResources"`
	} `json:"status"`
}

type exportJSON struct {
	header `json:",inline"`
	Status struct {
		Identity string `json:"identityHash"`
	} `json:"status"`
}

// readExport reads an APIExport, v1alpha1 or v1alpha2.
func readExport(key keys.Key, into *[]Export) reading {
	return decoding("APIExport", exportFields, func(o *exportJSON) {
		*into = append(*into, Export{Cluster: key.Cluster, Name: key.Name, Identity: o.Status.Identity})
	})
}

type workspaceJSON struct {
	header `json:",inline"`
	Spec   struct {
		Cluster string `json:"cluster"`
	} `json:"spec"`
}

// readWorkspace reads a Workspace. at is where it lies by the time it was decoded.
func readWorkspace(at func() *Workspace) reading {
	return decoding("Workspace", workspaceFields, func(o *workspaceJSON) {
		w := at()
		w.UID, w.Cluster, w.ShardName = o.Metadata.UID, o.Spec.Cluster, o.Metadata.Annotations[AnnotationShard]
		w.Region = o.Metadata.Labels[labelRegion]
	})
}

type shardJSON struct {
	header `json:",inline"`
	Spec   struct {
		ExternalURL string `json:"externalURL"`
	} `json:"spec"`
}

func readShard(key keys.Key, into *[]RegisteredShard) reading {
	return decoding("Shard", shardFields, func(o *shardJSON) {
		*into = append(*into, RegisteredShard{Name: key.Name, Region: o.Metadata.Labels[labelRegion], ExternalURL: o.Spec.ExternalURL})
	})
}

type definitionJSON struct {
	header `json:",inline"`
	Spec   struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Version  string `json:"version"` // of v1beta1
		Versions []struct {
			Name string `json:"name"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string `json:"storedVersions"`
	} `json:"status"`
}

func (d *Definition) reading() reading {
	r := decoding("CustomResourceDefinition", definitionFields, func(o *definitionJSON) {
		d.Resource = schema.GroupResource{Group: o.Spec.Group, Resource: o.Spec.Names.Plural}
		d.Schema = ExportRef{Cluster: o.Metadata.Annotations[annotationSchemaCluster], Name: o.Metadata.Annotations[annotationSchemaName]}
		d.StoredVersions = o.Status.StoredVersions
		for _, v := range o.Spec.Versions {
			d.Versions = append(d.Versions, v.Name)
		}
		if len(d.Versions) == 0 && o.Spec.Version != "" {
			d.Versions = []string{o.Spec.Version}
		}
	})
	decode := r.decode
	r.decode = func(value []byte) (metadata, error) {
		m, err := decode(value)
		if d.Problem = ""; err != nil {
			d.Problem = err.Error()
		}
		return m, err
	}
	return r
}
