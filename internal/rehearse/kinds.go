package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
)

// kind is a resource that is tried.
type kind struct {
	Kind
	resource   schema.GroupResource
	version    string   // at which writes are tried: the storage version if it is served; "" for none
	sync.Mutex          // for Kind, while several versions are listed
	name       string   // such as "Widget"
	served     []string // versions
	verbs      []string // "list", "update", "patch"
	defined    bool     // by a CustomResourceDefinition
	webhook    bool     // converts its objects
	expressive bool     // its definition makes messages by CEL, of any field
	status     string   // of the definition, where it is not served; "" else
}

func (k *kind) at(version string) schema.GroupVersionResource { return k.resource.WithVersion(version) }

// can tells whether the server offers a verb for the resource.
func (k *kind) can(verb string) bool { return slices.Contains(k.verbs, verb) }

// definition is what is needed of a CustomResourceDefinition.
type definition struct {
	Metadata struct{ DeletionTimestamp *metav1.Time }
	Spec     struct {
		Group      string
		Names      struct{ Plural, Kind string }
		Conversion struct{ Strategy string }
		Versions   []struct {
			Name            string
			Served, Storage bool
		}
	}
	Status struct {
		Conditions []metav1.Condition
	}
}

// definitions is the resource of CustomResourceDefinitions.
func definitions() *kind {
	at := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	return &kind{Kind: Kind{Resource: at.String()}, version: "v1", resource: at, name: "CustomResourceDefinition",
		served: []string{"v1"}, verbs: []string{"list", "update", "patch"}}
}

// kinds returns the resources to try.
func (r *runner) kinds(ctx context.Context, native discovery.DiscoveryInterface) ([]*kind, error) {
	kinds := []*kind{definitions()}
	err := r.pages(ctx, kinds[0], "v1", func(p page) error {
		for _, item := range p.Items {
			var d definition
			if err := json.Unmarshal(item, &d); err != nil {
				return err
			}
			k := d.kind()
			k.expressive = bytes.Contains(item, []byte(`"messageExpression"`))
			kinds = append(kinds, k)
		}
		return nil
	})
	if err != nil && refusalOf(err) == nil { // a refusal is found again when they are tried
		return nil, err
	}
	if r.Native {
		return r.addNative(kinds, native)
	}
	return kinds, nil
}

// kind is the resource that the definition defines.
func (d *definition) kind() *kind {
	at := schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural}
	k := &kind{resource: at, name: d.Spec.Names.Kind, verbs: []string{"list", "update", "patch"}, defined: true}
	k.webhook = d.Spec.Conversion.Strategy == "Webhook"
	k.Resource = at.String()
	for _, v := range d.Spec.Versions {
		if v.Served {
			k.served = append(k.served, v.Name)
		}
		if v.Served && v.Storage {
			k.version = v.Name
		}
	}
	if k.version == "" && len(k.served) > 0 {
		k.version = newest(k.served)
	}
	if d.Metadata.DeletionTimestamp != nil {
		k.NotChecked = "the definition is being deleted, and the API server deletes all objects"
	}
	var refused []string
	for _, c := range d.Status.Conditions {
		if (c.Type == "NamesAccepted" || c.Type == "Established") && c.Status != metav1.ConditionTrue {
			refused = append(refused, c.Type+": "+c.Message)
		}
	}
	k.status = strings.Join(refused, "; ")
	return k
}

// newest is the version that servers prefer.
func newest(versions []string) string {
	return slices.MaxFunc(versions, version.CompareKubeAwareVersionStrings)
}

// addNative adds the resources that the server shows and no definition defines. A group that cannot
// be discovered is not checked.
func (r *runner) addNative(kinds []*kind, from discovery.DiscoveryInterface) ([]*kind, error) {
	known := map[schema.GroupResource]*kind{}
	for _, k := range kinds {
		known[k.resource] = k
	}
	_, lists, err := from.ServerGroupsAndResources()
	var failed *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			at := schema.GroupResource{Group: gv.Group, Resource: resource.Name}
			k := known[at]
			switch {
			case strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "list"):
				continue
			case k == nil:
				k = &kind{resource: at, name: resource.Kind, verbs: resource.Verbs}
				k.Resource = at.String()
				known[at], kinds = k, append(kinds, k)
			case k.defined || slices.Contains(k.served, gv.Version):
				continue
			}
			k.served = append(k.served, gv.Version)
			k.version = newest(k.served)
		}
	}
	if failed != nil {
		for gv, err := range failed.Groups {
			kinds = append(kinds, &kind{Kind: Kind{Resource: "*." + gv.String(), NotChecked: err.Error()}})
		}
	}
	return kinds, nil
}
