package calico

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// admissionObject is an object that Calico's v3 manifests install beside the CRDs, and what it is for.
type admissionObject struct {
	resource, name string
	without        string // what happens where it is missing
}

func admissionObjects() []admissionObject {
	const (
		tier   = "new policies get neither spec.tier nor the label " + tierLabel
		types  = "new policies get no spec.types"
		delete = "nothing keeps the built-in tiers from being deleted"
	)
	return []admissionObject{
		{"mutatingadmissionpolicies", "tierlabel.policy.projectcalico.org", tier},
		{"mutatingadmissionpolicybindings", "set-tier-label-binding", tier},
		{"mutatingadmissionpolicies", "policytypes.policy.projectcalico.org", types},
		{"mutatingadmissionpolicybindings", "set-policytypes-binding", types},
		{"validatingadmissionpolicies", "protect-builtin-tiers.projectcalico.org", delete},
		{"validatingadmissionpolicybindings", "protect-builtin-tiers.projectcalico.org", delete},
	}
}

// checkAdmission warns of the admission policies that are not installed. What is migrated does not need them (the
// migration sets what they set), what is created afterwards does.
func checkAdmission(ctx context.Context, v *transform.View, k keys.Kubernetes) error {
	missing := false
	for _, object := range admissionObjects() {
		resource := schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: object.resource}
		key := k.Format(keys.Key{Resource: resource, Name: object.name})
		entry, err := v.Get(ctx, key)
		if err != nil {
			return err
		}
		if why := notThere(entry); why != "" {
			missing = true
			v.Raise(string(key), codeAdmissionMissing.Because("%s: without it %s", why, object.without))
		}
	}
	if missing {
		v.Report().AddStep("after the restore, apply the admission policies of your Calico release (they are in its manifest of v3 CRDs) before anyone creates a policy; the API server must serve MutatingAdmissionPolicy")
	}
	return nil
}

// notThere says why an object is not, or not for long; empty where it is there. A value that cannot be read is.
func notThere(entry *transform.Entry) string {
	if entry == nil {
		return "not in the snapshot"
	}
	if meta, err := encoding.ReadMeta(entry.Value); err == nil && !meta.DeletionTimestamp.IsZero() {
		return "it is being deleted"
	}
	return ""
}
