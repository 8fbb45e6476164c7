// Package migrations lists all transforms. Each transform has its own package, which must not
// import this one.
package migrations

import (
	"github.com/etcdshift/etcdshift/internal/calico"
	"github.com/etcdshift/etcdshift/internal/compact"
	"github.com/etcdshift/etcdshift/internal/crop"
	"github.com/etcdshift/etcdshift/internal/graft"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/patch"
	"github.com/etcdshift/etcdshift/internal/plan"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/internal/preparerestore"
	"github.com/etcdshift/etcdshift/internal/remove"
	"github.com/etcdshift/etcdshift/internal/renamenode"
	"github.com/etcdshift/etcdshift/internal/sanitize"
	"github.com/etcdshift/etcdshift/internal/storageversion"
	"github.com/etcdshift/etcdshift/transform"
)

// All returns every transform, in the order of the help.
func All() []transform.Spec {
	all := []transform.Spec{
		calico.Spec,
		storageversion.Spec,
		renamenode.Spec,
		policy.Spec,
		preparerestore.Spec,
		sanitize.Spec,
		crop.Spec,
		crop.ExtractSpec,
		graft.Spec,
		move.ExtractSpec,
		move.PurgeSpec,
		move.ImportSpec,
		remove.Spec,
		remove.PurgeSpec,
		patch.Spec,
		compact.Spec,
	}
	return append(all, plan.Spec(all))
}
