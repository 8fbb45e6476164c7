package calico

// defaultTierOrder is the order a tier has that gives none (libcalico-go/lib/resources/tier.go).
const defaultTierOrder = 1000000

// defaultTierFields makes explicit what Calico fills in when it reads a tier. The v3 CRD has no default for the order, and
// its rules demand one on the built-in tiers.
func defaultTierFields(spec map[string]any) {
	if spec["order"] == nil {
		spec["order"] = int64(defaultTierOrder)
	}
	if action := spec["defaultAction"]; action == nil || action == "" {
		spec["defaultAction"] = "Deny"
	}
}
