package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
)

// Member is an etcd member as the members bucket holds it. A restore replaces them all. One that cannot be read has its id alone, as
// one that was added and never started has its id and URLs.
type Member struct {
	ID       string   `json:"id"` // lower-case hex
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
}

// A cluster has a handful of members with a few URLs each; more than these would be a file made to fill memory.
const (
	maxMembers    = 1 << 8
	maxMemberSize = 16 << 10 // bytes of JSON
)

func parseMember(k, v []byte) (m Member, readable bool) {
	m.ID = string(clip(k))
	if len(v) > maxMemberSize {
		return m, false
	}
	var stored struct {
		Name     string   `json:"name"`
		PeerURLs []string `json:"peerURLs"`
	}
	if json.Unmarshal(v, &stored) != nil {
		return m, false
	}
	m.Name, m.PeerURLs = stored.Name, stored.PeerURLs
	return m, true
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
		m, _ := parseMember(k, v)
		members = append(members, m)
		return nil
	})
	return members, err
}

// Size is the size in bytes of the file as it was given, compressed or not.
func (s *Snapshot) Size() int64 { return s.info.Size() }
