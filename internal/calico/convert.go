package calico

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// convert turns a v1 record into a v3 object, in place: the spec is converted, the status stays.
// meta is the metadata seen by clients; convert adds name, UID and owners.
func (r *record) convert(meta *metav1.ObjectMeta, name, uid string, owners []translation) error {
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

// convertSpec turns a v1 spec into a v3 spec, in place, with the fields set by reading, admission
// and the live converters.
func convertSpec(k *kind, meta, spec map[string]any) error {
	switch k.Kind {
	case "Tier":
		// the v3 CRD has no default for the order, but its rules require one on the built-in tiers
		fill(spec, "order", defaultTierOrder)
		if spec["defaultAction"] == nil || spec["defaultAction"] == "" {
			spec["defaultAction"] = "Deny"
		}
	case "IPAMConfiguration": // an absent autoAllocateBlocks is false in v1, true in v3
		fill(spec, "autoAllocateBlocks", false)
		fill(spec, "strictAffinity", false)
	case "BlockAffinity":
		// type and labels stay, as in the live migration: calico-node adds labels when it starts
		deleted, err := parseDeleted(spec["deleted"])
		if err != nil {
			return err
		}
		spec["deleted"] = deleted
	case "IPAMBlock":
		return convertBlock(spec)
	case "IPAMHandle":
		fill(spec, "block", map[string]any{}) // required by the v3 CRD
	case kindClusterInformation:
		spec["datastoreReady"] = true
	default:
		admitPolicy(k, meta, spec)
	}
	return nil
}

// fit prunes unknown fields of a converted record, sets defaults, and validates the record against
// version v, like a server. errs are the errors of the metadata. fit returns the dropped paths.
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

// fieldErrors prints errors in one line, sorted by field: only the first few, with long values cut.
// The library returns errors in random map order.
func fieldErrors(errs field.ErrorList) string {
	const most = 8
	var out []string
	// errors of the whole object sort last
	at := func(err *field.Error) string { return strings.Replace(err.Field, "<nil>", "~", 1) }
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

// tierLabel is the label by which clients select the policies of a tier.
const tierLabel = "projectcalico.org/tier"

// admitPolicy sets the fields set by Calico's two mutating admission policies on a new policy: the
// tier, the tier label, and the types (directions).
func admitPolicy(k *kind, meta, spec map[string]any) {
	switch {
	case k.Name == namePolicy:
		if tier := spec["tier"]; tier == nil || tier == "" {
			spec["tier"] = defaultTier
		}
		labels := objectAt(meta, "labels")
		if labels == nil {
			labels = map[string]any{}
			meta["labels"] = labels
		}
		labels[tierLabel] = text(spec, "tier")
		// The admission policy tests the presence of fields, but Calico writes no empty lists.
		setTypes(spec, "types", hasItems(spec, "ingress") || !hasItems(spec, "egress"))
	case k.Kind == "StagedKubernetesNetworkPolicy":
		setTypes(spec, "policyTypes", true) // like Kubernetes: egress rules alone still isolate ingress
	}
}

// setTypes fills a missing or empty list of directions.
func setTypes(spec map[string]any, name string, ingress bool) {
	if hasItems(spec, name) {
		return
	}
	types := []any{}
	if ingress {
		types = append(types, "Ingress")
	}
	if hasItems(spec, "egress") {
		types = append(types, "Egress")
	}
	spec[name] = types
}

func hasItems(spec map[string]any, name string) bool {
	switch v := spec[name].(type) {
	case nil:
		return false
	case []any:
		return len(v) > 0
	default:
		return true // not a list: validation refuses the record
	}
}

// warnTiers reports policies without a tier after the migration, or with a tier that is being
// deleted: Calico's webhook refuses to create such a policy.
func (m *run) warnTiers() error {
	there := m.table.tiersToBe()
	for _, tier := range slices.Sorted(maps.Keys(m.policies)) {
		reason := ""
		switch deleting, ok := there[tier]; {
		case !ok:
			reason = fmt.Sprintf("its tier, %q, will not exist", tier)
		case deleting:
			reason = fmt.Sprintf("its tier, %q, is being deleted: it accepts no policies any more, and is deleted "+
				"with its last finalizer", tier)
		default:
			continue
		}
		for _, id := range m.policies[tier] {
			if id.fate != skipped {
				m.Raise(string(id.key), codeTierMissing.Because("%s", reason))
			}
		}
	}
	return nil
}

// tiersToBe returns the tiers after the migration; the value reports whether the tier is being
// deleted. Calico creates built-in tiers.
func (t *table) tiersToBe() map[string]bool {
	there := map[string]bool{}
	for _, builtin := range builtinTiers() {
		there[builtin.name] = false
	}
	tiers, _ := kinds().called("Tier")
	for _, id := range t.records {
		if id.kind == tiers && id.optional().twin == nil && id.present() {
			there[id.name()] = id.deleting
		}
	}
	for _, o := range t.objectsOf(tiers) {
		if !o.replaced {
			there[o.name] = o.deleting
		}
	}
	return there
}

// builtinTier holds the values required by v3 of a tier created by Calico (rules in its v3 CRD).
type builtinTier struct {
	name   string
	order  float64
	action string
}

func builtinTiers() []builtinTier {
	return []builtinTier{{"default", 1_000_000, "Deny"}, {"kube-admin", 1_000, "Pass"},
		{"kube-baseline", 10_000_000, "Pass"}}
}

// checkTiers reports changed built-in tiers: only the cluster's owner can choose between the two
// orders. Calico creates a missing tier.
func (s *store) checkTiers() error {
	kd, _ := kinds().called("Tier")
	for _, want := range builtinTiers() {
		key := s.key(kd.v1(), "", want.name)
		obj, _, err := s.read(key)
		if err != nil {
			return err
		}
		if drift := want.drift(objectAt(obj, "spec")); obj != nil && len(drift) > 0 {
			s.Raise(string(key), codeTierDrift.Because("built-in tier %s: %s", want.name, strings.Join(drift, ", ")))
		}
	}
	return nil
}

// drift lists differences after Calico's defaults: order 1000000, action Deny.
func (t builtinTier) drift(spec map[string]any) (drift []string) {
	order, action := cmp.Or(spec["order"], any(defaultTierOrder)), cmp.Or(spec["defaultAction"], any("Deny"))
	if n, ok := numeric(order); !ok || n != t.order {
		drift = append(drift, fmt.Sprintf("spec.order is %v, must be %.0f", order, t.order))
	}
	if action != t.action {
		drift = append(drift, fmt.Sprintf("spec.defaultAction is %v, must be %s", action, t.action))
	}
	return drift
}

// defaultTierOrder is the order of a tier without one (libcalico-go/lib/resources/tier.go).
const defaultTierOrder int64 = 1_000_000

// The labels by which IPAM selects block affinities, since v3.31.
const (
	labelAffinityType = "projectcalico.org/affinity-type"
	labelIPVersion    = "projectcalico.org/ip-version"
)

// affinityType returns the type of an affinity as read by IPAM.
func affinityType(spec map[string]any) string { return cmp.Or(text(spec, "type"), "host") }

// affinityLabels returns the labels by which IPAM selects an affinity with that spec.
func affinityLabels(spec map[string]any) map[string]string {
	version := "4"
	if strings.Contains(text(spec, "cidr"), ":") {
		version = "6"
	}
	return map[string]string{
		machines.HostnameHashLabel: machines.HostnameHash(text(spec, "node")),
		labelAffinityType:          affinityType(spec),
		labelIPVersion:             version,
	}
}

// parseDeleted parses the v1 string like IPAM at run time. The live migration parses "1" and "True"
// as false.
func parseDeleted(v any) (bool, error) {
	switch v := v.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case string:
		if v == "" {
			return false, nil
		}
		if b, err := strconv.ParseBool(v); err == nil {
			return b, nil
		}
	}
	return false, codeInvalid.Because("spec.deleted: %v is neither true nor false", v)
}

// convertBlock writes the CIDR in Calico's form and fills in the lists and the boolean required by
// the v3 CRD. Other fields stay, including strictAffinity and releasedAt of cooling addresses.
func convertBlock(spec map[string]any) error {
	ipnet, err := parseCIDR(spec)
	if err != nil {
		return err
	}
	spec["cidr"] = ipnet.String()
	fill(spec, "attributes", []any{})
	fill(spec, "unallocated", []any{})
	fill(spec, "strictAffinity", false)
	return nil
}

// fill sets a missing field.
func fill(spec map[string]any, name string, value any) {
	if spec[name] == nil {
		spec[name] = value
	}
}
