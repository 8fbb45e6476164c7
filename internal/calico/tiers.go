package calico

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/keys"
)

// builtinTier is what v3 demands of a tier that Calico makes itself (rules in its v3 CRD).
type builtinTier struct {
	name   string
	order  float64
	action string
}

func builtinTiers() []builtinTier {
	return []builtinTier{{"default", 1_000_000, "Deny"}, {"kube-admin", 1_000, "Pass"}, {"kube-baseline", 10_000_000, "Pass"}}
}

// checkTiers reports built-in tiers that were changed: only the cluster's owner knows which of the
// two orders was meant. Calico makes a missing one.
func (m *run) checkTiers() {
	kd, _ := kinds().ofV3("tiers")
	for _, want := range builtinTiers() {
		key := m.Keys.Format(keys.Key{Resource: kd.v1(), Name: want.name})
		obj, _ := m.Read(key)
		if drift := want.drift(objectAt(obj, "spec")); obj != nil && len(drift) > 0 {
			m.Raise(string(key), codeTierDrift.Because("built-in tier %s: %s", want.name, strings.Join(drift, ", ")))
		}
	}
}

// drift compares as Calico reads a tier: the order defaults to 1000000, the action to Deny.
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
