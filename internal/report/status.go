package report

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Status describes a file and the versions of its stored objects.
type Status struct {
	snapshot.Status
	// as printed by "etcdctl endpoint hashkv" for a server started on the file
	HashKV      string `json:"hashKV"`
	ContentHash string `json:"contentHash"` // of live keys and values, hex
	*inspect.Catalogue
}

// ReadStatus returns the status of a snapshot. A wrong digest is part of the status, not an error.
func ReadStatus(ctx context.Context, r *inspect.Reader) (*Status, error) {
	st, s := &Status{}, r.Snapshot()
	var served snapshot.Restored
	var content [sha256.Size]byte
	var errs [4]error
	var others sync.WaitGroup
	others.Go(func() { st.Status, errs[0] = s.Status(ctx) })
	others.Go(func() { served, errs[1] = s.Restored(ctx, 0) })
	others.Go(func() { content, errs[2] = s.ContentHash(ctx) })
	errs[3] = s.Guard(func() (err error) {
		st.Catalogue, err = inspect.Survey(ctx, r)
		return err
	})
	others.Wait()
	if errors.Is(errs[0], snapshot.ErrDigest) {
		errs[0] = nil
	}
	st.HashKV, st.ContentHash = fmt.Sprint(served.HashKV), hex.EncodeToString(content[:])
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
