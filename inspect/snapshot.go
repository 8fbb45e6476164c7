package inspect

import "github.com/etcdshift/etcdshift/snapshot"

// Snapshot is what r reads, whatever the revision it reads at: for records as they are stored, and for leases.
func (r *Reader) Snapshot() *snapshot.Snapshot { return r.snapshot.Snapshot }
