package snapshot

import "context"

// Change is one write on top of a snapshot: a Put of Value with Lease, or a deletion.
type Change struct {
	Key, Value []byte
	Delete     bool
	Lease      int64 // 0 for none; a Put without it detaches the key from its lease, as in etcd
	Prior      int64 // ModRevision the change was planned against, 0 for an absent key
}

// WriteConfig says how to write.
type WriteConfig struct {
	// Check looks at the finished output before it gets its name; an error keeps it from being published.
	Check func(ctx context.Context, out *Snapshot) error
}
