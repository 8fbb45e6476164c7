package schema

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/etcdshift/etcdshift/internal/bounded"
)

// Update returns the stored bytes after an update of the CRD to the v1 content: v1beta1 JSON, with
// the storage version among status.storedVersions. The generation is that of content. Unknown
// fields, and changes that no server accepts, such as another group, scope or names of an
// established CRD, are errors. Errors quote no value.
func (c *CRD) Update(ctx context.Context, content map[string]any) ([]byte, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	unknown, err := kjson.UnmarshalStrict(data, &apiextensionsv1.CustomResourceDefinition{})
	if err == nil {
		err = errors.Join(unknown...)
	}
	if err != nil {
		return nil, err
	}
	after, _, err := crdCodec().decode(data)
	if err != nil {
		return nil, err
	}
	for _, v := range after.Spec.Versions {
		if v.Storage && !slices.Contains(after.Status.StoredVersions, v.Name) {
			after.Status.StoredVersions = append(after.Status.StoredVersions, v.Name)
		}
	}
	before := c.internal.DeepCopy()
	before.ResourceVersion, after.ResourceVersion = "1", "1" // an update has a resourceVersion; it is not stored
	bounded.Environment()                                    // rules of defaults compile in this environment
	if errs := validation.ValidateCustomResourceDefinitionUpdate(ctx, after, before); len(errs) > 0 {
		return nil, refusedUpdate(errs)
	}
	after.ResourceVersion = ""
	return encode(after)
}

// refusedUpdate lists errors without their values.
func refusedUpdate(errs field.ErrorList) error {
	var why []string
	for _, e := range errs {
		why = append(why, fmt.Sprintf("%s: %s", e.Field, cmp.Or(e.Detail, string(e.Type))))
	}
	slices.Sort(why)
	return fmt.Errorf("no server accepts the update: %s", strings.Join(slices.Compact(why), "; "))
}
