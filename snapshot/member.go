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

func parseMember(k, v []byte) (Member, error) {
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
		return s.entries(ctx, "members", func(k, v []byte) error {
			m, err := parseMember(k, v)
			members = append(members, m)
			return err
		})
	})
	return members, s.wrap(err)
}

// Size is the size of the file in bytes.
func (s *Snapshot) Size() int64 { return int64(len(s.data)) }
