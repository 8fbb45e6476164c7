package schema

import (
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Stored returns the bytes stored by a create of this CRD, without managedFields: v1beta1 JSON,
// generation 1, the given uid, created in whole seconds, and only storedVersions in the status. A
// server's controllers accept the names and set the conditions; a CRD with names but without
// conditions would never be established. An empty uid is an error: CRDs without a uid share a slot
// of the server's cache. Stored checks name, storage version and structural schemas, but not
// everything that a create checks.
func (c *CRD) Stored(uid string, created time.Time) ([]byte, error) {
	if uid == "" {
		return nil, fmt.Errorf("CustomResourceDefinition %q: no uid", c.v1.Name)
	}
	if err := checkUsable(c); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %q: %w", c.v1.Name, err)
	}
	fresh := c.internal.DeepCopy()
	fresh.ObjectMeta = metav1.ObjectMeta{
		Name:              c.internal.Name,
		GenerateName:      c.internal.GenerateName,
		UID:               types.UID(uid),
		CreationTimestamp: metav1.NewTime(created.UTC().Truncate(time.Second)),
		Generation:        1,
		Labels:            c.internal.Labels,
		Annotations:       c.internal.Annotations,
		OwnerReferences:   c.internal.OwnerReferences,
		Finalizers:        c.internal.Finalizers,
	}
	fresh.Status = apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{c.StorageVersion()}}
	return encode(fresh)
}

func checkUsable(c *CRD) error {
	if want := c.v1.Spec.Names.Plural + "." + c.v1.Spec.Group; c.v1.Name != want {
		return fmt.Errorf("name must be %q", want)
	}
	storage := 0
	for _, v := range c.v1.Spec.Versions {
		if v.Storage {
			storage++
		}
	}
	if storage != 1 {
		return fmt.Errorf("%d storage versions, must be 1", storage)
	}
	for _, v := range c.v1.Spec.Versions {
		version, err := c.Version(v.Name)
		if err != nil {
			return err
		}
		structural, _ := version.structural()
		if structural == nil && !version.preserves() {
			return fmt.Errorf("version %q: no schema", v.Name)
		}
		if errs := structuralschema.ValidateStructural(nil, structural); len(errs) > 0 && !version.preserves() {
			return fmt.Errorf("version %q: schema: %w", v.Name, errs.ToAggregate())
		}
	}
	return nil
}
