package calico

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// tierLabel is the label that lets a client select the policies of a tier.
const tierLabel = "projectcalico.org/tier"

// admitPolicy sets what Calico's two mutating admission policies would have set on a policy that is created: the tier,
// the label that repeats it, and the directions it applies to.
func admitPolicy(k kind, meta, spec map[string]any) {
	switch {
	case k.Name == namePolicy:
		setTier(meta, spec)
		setTypes(spec)
	case k.Kind == "StagedKubernetesNetworkPolicy":
		setPolicyTypes(spec)
	}
}

func setTier(meta, spec map[string]any) {
	if tier := spec["tier"]; tier == nil || tier == "" {
		spec["tier"] = defaultTier
	}
	setLabel(meta, tierLabel, text(spec, "tier"))
}

// setTypes fills spec.types where it is missing. Empty lists are as good as missing: the admission policy, which looks at
// the presence of keys, only ever sees objects written with omitempty, and with the fields of the kind alone.
func setTypes(spec map[string]any) {
	if hasItems(spec, "types") {
		return
	}
	switch ingress, egress := hasItems(spec, "ingress"), hasItems(spec, "egress"); {
	case ingress && egress:
		spec["types"] = []any{"Ingress", "Egress"}
	case egress:
		spec["types"] = []any{"Egress"}
	default:
		spec["types"] = []any{"Ingress"}
	}
}

// setPolicyTypes fills spec.policyTypes as Kubernetes does for its network policies: egress rules alone still isolate
// ingress.
func setPolicyTypes(spec map[string]any) {
	if hasItems(spec, "policyTypes") {
		return
	}
	spec["policyTypes"] = []any{"Ingress"}
	if hasItems(spec, "egress") {
		spec["policyTypes"] = []any{"Ingress", "Egress"}
	}
}

func hasItems(spec map[string]any, name string) bool {
	switch v := spec[name].(type) {
	case nil:
		return false
	case []any:
		return len(v) > 0
	default:
		return true // not a list: for validation to judge
	}
}

// setLabel sets a label in unstructured metadata.
func setLabel(meta map[string]any, name, value string) {
	labels, ok := meta["labels"].(map[string]any)
	if !ok {
		labels = map[string]any{}
		meta["labels"] = labels
	}
	labels[name] = value
}

// noteTier remembers which tier a policy names that is a v3 record in the end.
func (m *run) noteTier(id *identity, obj map[string]any) {
	if m.kinds[id.kind].Name == namePolicy {
		tier := text(objectAt(obj, "spec"), "tier")
		m.policies[tier] = append(m.policies[tier], id)
	}
}

// warnTiers reports policies whose tier will not be there, or is being deleted. Calico's webhook refuses to create such a
// policy; it makes the built-in tiers itself.
func (m *run) warnTiers(context.Context) error {
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
			if id.fate != left {
				m.view.Raise(string(id.key), codeTierMissing.Because("%s", reason))
			}
		}
	}
	return nil
}

// tiersToBe are the names of the tiers that will be there, each with whether it is being deleted.
func (m *run) tiersToBe() map[string]bool {
	there := map[string]bool{}
	for _, builtin := range builtinTiers() {
		there[builtin.name] = false
	}
	tiers := m.indexOf(func(k kind) bool { return k.Kind == "Tier" })
	for _, id := range m.table.records {
		if id.kind == tiers && id.twin == nil && id.present() {
			there[id.name] = id.deleting
		}
	}
	for _, o := range m.table.objectsOf(tiers) {
		if !o.replaced {
			there[o.name] = o.deleting
		}
	}
	return there
}
