package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
)

// Member is an etcd member as the members bucket holds it. A restore replaces them all.
type Member struct {
	ID       string   `json:"id"` // lower-case hex
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
}

// A cluster has a handful of members with a few URLs each; more than these would be a file made to fill memory.
const (
	maxMembers    = 1 << 8
	maxMemberSize = 16 << 10 // bytes, id and JSON
)

func parseMember(k, v []byte) (Member, error) {
	if len(k)+len(v) > maxMemberSize {
		return Member{}, fmt.Errorf("%w: bucket \"members\": a member of %d bytes", ErrDamaged, len(k)+len(v))
	}
	var stored struct {
		Name     string   `json:"name"`
		PeerURLs []string `json:"peerURLs"`
	}
	if err := json.Unmarshal(v, &stored); err != nil {
		return Member{}, fmt.Errorf("%w: bucket \"members\": %q is not JSON", ErrDamaged, k)
	}
	return Member{ID: string(k), Name: stored.Name, PeerURLs: stored.PeerURLs}, nil
}

// Members returns the members the file knows, by id. etcd 3.4 keeps them elsewhere and a file of it may have none.
func (s *Snapshot) Members(ctx context.Context) (members []Member, err error) {
	err = s.guard(func() error {
		members, err = s.readMembers(ctx)
		return err
	})
	return members, s.wrap(err)
}

func (s *Snapshot) readMembers(ctx context.Context) (members []Member, err error) {
	err = s.entries(ctx, "members", func(k, v []byte) error {
		if len(members) == maxMembers {
			return fmt.Errorf("%w: bucket \"members\": more than %d members", ErrDamaged, maxMembers)
		}
		m, err := parseMember(k, v)
		members = append(members, m)
		return err
	})
	return members, err
}

// Size is the size in bytes of the file as it was given, compressed or not.
func (s *Snapshot) Size() int64 { return s.info.Size() }
