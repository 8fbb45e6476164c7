package calico

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
)

// convert makes the v3 object of a v1 record: same spec but for what differs between the groups, status kept. uid and
// owners are those of the v3 object. The record is used up.
func (r *record) convert(name, uid string, owners []translation) (map[string]any, metav1.ObjectMeta, error) {
	seen := r.meta.seen()
	seen.Name, seen.Namespace, seen.UID = name, r.key.Namespace, types.UID(uid)
	setOwners(&seen, owners)
	meta, err := metadataObject(seen)
	if err != nil {
		return nil, seen, codeBadMetadata.Because("%v", err)
	}
	if err := convertSpec(r.kind, meta, r.spec); err != nil {
		return nil, seen, err
	}
	r.obj["apiVersion"] = apiVersionV3
	r.obj["kind"] = r.kind.Kind
	r.obj["metadata"] = meta
	return r.obj, seen, nil
}

// convertSpec makes a v1 spec a v3 one, in place, with what reading, admission and the live converters would set.
func convertSpec(k kind, meta, spec map[string]any) error {
	switch k.Kind {
	case "Tier":
		defaultTierFields(spec)
	case "IPAMConfiguration":
		convertIPAMConfig(spec)
	case "BlockAffinity":
		return convertAffinity(spec)
	case "IPAMBlock":
		return convertBlock(spec)
	case "IPAMHandle":
		convertHandle(spec)
	case kindClusterInformation:
		spec["datastoreReady"] = true
	default:
		admitPolicy(k, meta, spec)
	}
	return nil
}

// fit makes obj what a server would store at version v: what the CRD does not know is pruned, its defaults are filled in,
// and what is left must be valid. It returns the paths that were dropped.
func fit(ctx context.Context, k kind, v *schema.Version, obj map[string]any, meta metav1.ObjectMeta) ([]string, error) {
	dropped := v.Prune(obj)
	if err := v.Default(obj); err != nil {
		return dropped, codeInvalid.Because("%v", err)
	}
	errs := validation.ValidateObjectMeta(&meta, k.Namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, v.Validate(ctx, obj)...)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(errs) > 0 {
		return dropped, codeInvalid.Because("%s", fieldErrors(errs))
	}
	return dropped, nil
}

// fieldErrors prints errors in one line, at most a few of them and not all of a long value: an object with a thousand bad
// entries is one problem.
func fieldErrors(errs field.ErrorList) string {
	const most = 8
	var out []string
	for i, err := range errs {
		if i == most {
			out = append(out, fmt.Sprintf("%d more", len(errs)-most))
			break
		}
		out = append(out, finding.Clip(err.Error(), 400))
	}
	return strings.Join(out, "; ")
}
