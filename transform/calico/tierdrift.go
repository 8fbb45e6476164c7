package calico

import (
	"context"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
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
func checkTiers(ctx context.Context, v *transform.View, k keys.Kubernetes) error {
	kd, _ := kindOfV3("tiers")
	for _, want := range builtinTiers() {
		entry, err := v.Get(ctx, k.Format(keys.Key{Resource: kd.v1(), Name: want.name}))
		if err != nil {
			return err
		}
		if entry == nil {
			continue
		}
		obj, _, err := encoding.DecodeObject(entry.Value)
		if err != nil {
			continue // reported where it is migrated
		}
		spec, _ := obj["spec"].(map[string]any)
		if drift := want.drift(spec); len(drift) > 0 {
			v.Raise(string(entry.Key), codeTierDrift.Because("built-in tier %s: %s", want.name, strings.Join(drift, ", ")))
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
	if n, ok := number(order); !ok || n != t.order {
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

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
