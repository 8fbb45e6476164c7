package calico

import (
	"fmt"
	"maps"
	"slices"
)

// tierLabel is the label that lets a client select the policies of a tier.
const tierLabel = "projectcalico.org/tier"

// admitPolicy sets the fields that Calico's two mutating admission policies set on a new policy:
// the tier, the label that repeats it, and the directions it applies to.
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
		// The admission policy looks at the presence of fields, but Calico writes no empty lists.
		setTypes(spec, "types", hasItems(spec, "ingress") || !hasItems(spec, "egress"))
	case k.Kind == "StagedKubernetesNetworkPolicy":
		setTypes(spec, "policyTypes", true) // as Kubernetes: egress rules alone still isolate ingress
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
		return true // not a list, which validation refuses
	}
}

// warnTiers reports policies whose tier will not be there, or is being deleted: Calico's webhook
// refuses to create such a policy.
func (m *run) warnTiers() {
	there := m.tiersToBe()
	for _, tier := range slices.Sorted(maps.Keys(m.policies)) {
		reason := ""
		switch deleting, ok := there[tier]; {
		case !ok:
			reason = fmt.Sprintf("its tier, %q, will not be there", tier)
		case deleting:
			reason = fmt.Sprintf("its tier, %q, is being deleted: it takes no policy any more, and goes with its last finalizer", tier)
		default:
			continue
		}
		for _, id := range m.policies[tier] {
			if id.fate != skipped {
				m.Raise(string(id.key), codeTierMissing.Because("%s", reason))
			}
		}
	}
}

// tiersToBe says of each tier that will be there whether it is being deleted. Calico makes built-in
// tiers.
func (m *run) tiersToBe() map[string]bool {
	there := map[string]bool{}
	for _, builtin := range builtinTiers() {
		there[builtin.name] = false
	}
	tiers, _ := kinds().ofV3("tiers")
	for _, id := range m.table.records {
		if id.kind == tiers && id.rest().twin == nil && id.present() {
			there[id.name()] = id.deleting
		}
	}
	for _, o := range m.table.objectsOf(tiers) {
		if !o.replaced {
			there[o.name] = o.deleting
		}
	}
	return there
}
