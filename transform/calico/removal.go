package calico

import (
	"context"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// removeV1 deletes the v1 group: every record of every kind, the CRDs, and the group's APIService. Left in place, the group
// would make restored components go on choosing it (libcalico-go/lib/backend/k8s/discovery.go: v3 only where v1 is absent);
// records without their CRD would come back with it one day. It must not be called where a record was left alone.
func removeV1(ctx context.Context, v *transform.View, k keys.Kubernetes, set *crdSet) error {
	for entry, err := range v.Live(ctx, v1Dir(k)) {
		if err != nil {
			return err
		}
		if err := v.Delete(ctx, entry.Key, "replaced by "+apiVersionV3); err != nil {
			return err
		}
	}
	for _, plural := range set.v1Kinds() {
		key := k.Format(keys.Key{Resource: keys.DefinitionType(), Name: plural + "." + groupV1})
		if _, known := kindOfV1(plural); !known {
			v.Raise(string(key), codeUnknownKind.Because("its kind is not in %s, and it has no records: it goes with the other CRDs of %s", apiVersionV3, groupV1).Settled(finding.Noted))
		}
		if err := v.Delete(ctx, key, "its group was migrated to "+apiVersionV3); err != nil {
			return err
		}
	}
	return v.Delete(ctx, apiServiceKey(k, groupV1, "v1"), "its group is gone")
}
