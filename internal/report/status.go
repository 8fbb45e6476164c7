package report

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Status describes a file and the versions of its stored objects.
type Status struct {
	snapshot.Status
	ContentHash string `json:"contentHash,omitempty"` // of live keys and values, hex; only if asked for
	*inspect.Catalogue
}

// ReadStatus returns the status of a snapshot, with its ContentHash if content is true. A wrong
// digest is part of the status, not an error.
func ReadStatus(ctx context.Context, r *inspect.Reader, content bool) (*Status, error) {
	st, s := &Status{}, r.Snapshot()
	var errs [3]error
	var others sync.WaitGroup
	others.Go(func() { st.Status, errs[0] = s.Status(ctx) })
	if content {
		others.Go(func() {
			var hash [sha256.Size]byte
			hash, errs[1] = s.ContentHash(ctx)
			st.ContentHash = hex.EncodeToString(hash[:])
		})
	}
	errs[2] = s.Guard(func() (err error) {
		st.Catalogue, err = inspect.Survey(ctx, r)
		return err
	})
	others.Wait()
	if errors.Is(errs[0], snapshot.ErrDigest) {
		errs[0] = nil
	}
	return st, cmp.Or(errs[:]...)
}

// TTL counts the leases with the same time to live.
type TTL struct {
	Seconds int64 `json:"seconds"`
	Leases  int   `json:"leases"`
}

func readLeases(ctx context.Context, s *snapshot.Snapshot) ([]TTL, error) {
	leases, err := s.Leases(ctx)
	counts := map[int64]int{}
	for _, ttl := range leases {
		counts[ttl]++
	}
	out := []TTL{}
	for _, ttl := range slices.Backward(slices.Sorted(maps.Keys(counts))) {
		out = append(out, TTL{ttl, counts[ttl]})
	}
	return out, err
}
