package calico

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
	tier := text(spec, "tier")
	if tier == "" {
		tier = defaultTier
		spec["tier"] = tier
	}
	setLabel(meta, tierLabel, tier)
}

// setTypes fills spec.types where it is missing. Empty lists are as good as missing: the admission policy, which looks at
// the presence of keys, only ever sees objects written with omitempty.
func setTypes(spec map[string]any) {
	if hasItems(spec, "types") || hasItems(spec, "policyTypes") {
		return
	}
	delete(spec, "policyTypes")
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
	if hasItems(spec, "types") || hasItems(spec, "policyTypes") {
		return
	}
	delete(spec, "types")
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
