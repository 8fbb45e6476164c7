// Package migrations lists all transforms. Each lives in a folder beside this one, which it must
// not import.
package migrations

import (
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/calico"
	"github.com/etcdshift/etcdshift/transform/compact"
	"github.com/etcdshift/etcdshift/transform/kcp/carry"
	"github.com/etcdshift/etcdshift/transform/kcp/extract"
	"github.com/etcdshift/etcdshift/transform/kcp/purge"
	"github.com/etcdshift/etcdshift/transform/patch"
	"github.com/etcdshift/etcdshift/transform/plan"
	"github.com/etcdshift/etcdshift/transform/policyapply"
	"github.com/etcdshift/etcdshift/transform/preparerestore"
	"github.com/etcdshift/etcdshift/transform/remove"
	"github.com/etcdshift/etcdshift/transform/renamenode"
	"github.com/etcdshift/etcdshift/transform/sanitize"
	"github.com/etcdshift/etcdshift/transform/storageversion"
)

// All returns every transform, in the order of the help.
func All() []transform.Spec {
	all := []transform.Spec{
		calico.Spec,
		storageversion.Spec,
		renamenode.Spec,
		policyapply.Spec,
		preparerestore.Spec,
		sanitize.Spec,
		extract.Spec,
		purge.Spec,
		carry.Spec,
		remove.Spec,
		patch.Spec,
		compact.Spec,
	}
	return append(all, plan.Spec(all))
}
