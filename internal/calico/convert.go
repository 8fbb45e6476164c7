package calico

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
)

// convert makes a v1 record a v3 object, in place: the spec is converted, the status stays. meta is
// the metadata that clients saw; it is completed by name, uid and owners.
func (r *record) convert(meta *metav1.ObjectMeta, name, uid string, owners translations) error {
	meta.Name, meta.Namespace, meta.UID = name, r.key.Namespace, types.UID(uid)
	setOwners(meta, owners)
	content, err := metadataObject(*meta)
	if err != nil {
		return codeBadMetadata.Because("%v", err)
	}
	if err := convertSpec(r.kind, content, r.spec); err != nil {
		return err
	}
	r.obj["apiVersion"], r.obj["kind"], r.obj["metadata"] = apiVersionV3, r.kind.Kind, content
	return nil
}

// convertSpec makes a v1 spec a v3 one, in place, with the fields that reading, admission and the
// live converters would set.
func convertSpec(k *kind, meta, spec map[string]any) error {
	switch k.Kind {
	case "Tier":
		// the v3 CRD has no default for the order, and its rules demand one on the built-in tiers
		fill(spec, "order", defaultTierOrder)
		if spec["defaultAction"] == nil || spec["defaultAction"] == "" {
			spec["defaultAction"] = "Deny"
		}
	case "IPAMConfiguration": // absent, autoAllocateBlocks is false in v1 and true in v3
		fill(spec, "autoAllocateBlocks", false)
		fill(spec, "strictAffinity", false)
	case "BlockAffinity":
		// type and labels stay, as under the live migration: calico-node adds labels when it starts
		deleted, err := parseDeleted(spec["deleted"])
		if err != nil {
			return err
		}
		spec["deleted"] = deleted
	case "IPAMBlock":
		return convertBlock(spec)
	case "IPAMHandle":
		fill(spec, "block", map[string]any{}) // which the v3 CRD demands
	case kindClusterInformation:
		spec["datastoreReady"] = true
	default:
		admitPolicy(k, meta, spec)
	}
	return nil
}

// fit makes a converted record what a server would store at version v: unknown fields are pruned,
// defaults are filled in, and the rest must be valid; errs are the errors of its metadata. It
// returns the dropped paths.
func fit(ctx context.Context, v *schema.Version, r *record, errs field.ErrorList) ([]string, error) {
	dropped := v.Prune(r.obj)
	if err := v.Default(r.obj); err != nil {
		return dropped, codeInvalid.Because("%v", err)
	}
	errs = append(errs, v.Validate(ctx, r.obj)...)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(errs) > 0 {
		return dropped, codeInvalid.Because("%s", fieldErrors(errs))
	}
	return dropped, nil
}

// fieldErrors prints errors in one line, by their fields: only the first few, and only the
// beginning of long values. The library finds them in the order of a map.
func fieldErrors(errs field.ErrorList) string {
	const most = 8
	var out []string
	at := func(err *field.Error) string { return strings.Replace(err.Field, "<nil>", "~", 1) } // of the whole object: behind the others
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.Error(), b.Error()))
	})
	for _, err := range errs[:min(most, len(errs))] {
		out = append(out, finding.Clip(err.Error(), 400))
	}
	if len(errs) > most {
		out = append(out, fmt.Sprintf("%d more", len(errs)-most))
	}
	return strings.Join(out, "; ")
}
