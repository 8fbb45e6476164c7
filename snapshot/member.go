package snapshot

import (
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
