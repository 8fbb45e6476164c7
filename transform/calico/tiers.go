package calico

import (
	"context"
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
	return []builtinTier{
		{"default", 1_000_000, "Deny"},
		{"kube-admin", 1_000, "Pass"},
		{"kube-baseline", 10_000_000, "Pass"},
	}
}

// checkTiers reports built-in tiers that somebody changed: which of the two orders was meant, nobody but the cluster's owner
// can tell. A tier that is not there is made by Calico.
func (m *run) checkTiers(ctx context.Context) error {
	kd, _ := kindOfV3("tiers")
	for _, want := range builtinTiers() {
		key := m.keys.Format(keys.Key{Resource: kd.v1(), Name: want.name})
		obj, _, err := m.read(ctx, key)
		if err != nil {
			return err
		}
		if obj == nil {
			continue
		}
		spec := objectAt(obj, "spec")
		if drift := want.drift(spec); len(drift) > 0 {
			m.view.Raise(string(key), codeTierDrift.Because("built-in tier %s: %s", want.name, strings.Join(drift, ", ")))
		}
	}
	return nil
}

// drift compares as Calico reads a tier: without an order it is 1000000, without an action Deny.
func (t builtinTier) drift(spec map[string]any) (drift []string) {
	order := spec["order"]
	if order == nil {
		order = int64(1_000_000)
	}
	if n, ok := numeric(order); !ok || n != t.order {
		drift = append(drift, fmt.Sprintf("spec.order is %v, must be %.0f", order, t.order))
	}
	action := spec["defaultAction"]
	if action == nil {
		action = "Deny"
	}
	if action != t.action {
		drift = append(drift, fmt.Sprintf("spec.defaultAction is %v, must be %s", action, t.action))
	}
	return drift
}

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
