package bench

import (
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/test/kcptest"
)

// Peers. B is a copy with fsync followed by one SHA-256 pass; SHA-256 is only the pass.
const (
	peerB       = "B"
	peerHash    = "SHA-256"
	peerRestore = "etcdutl snapshot restore"
	peerDefrag  = "etcdutl defrag"                             // on a restored file, without a compaction
	peerMember  = "etcdutl snapshot restore of member/snap/db" // without the log
	peerStatus  = "etcdutl snapshot status"
	peerCheck   = "bbolt check"
	peerAuger   = "auger extract --fields=key"
)

// row is a measured command. In args, IN and OUT are replaced by paths.
type row struct {
	name  string
	input string // a variant; see makeInput
	sizes []string
	args  []string
	exit  int // exit status of success
	peers []peer
	// Aims without a peer: seconds on S, MiB, and bytes for each key newer than the compaction.
	seconds, memory, perKey float64
	grows                   bool // the output size has its own aim
}

type peer struct {
	name string
	aim  float64 // ratio to the peer's time, 0 for none
}

// size is a number of live keys.
type size struct {
	name string
	keys int
	runs int // number of runs for the median
}

func sizes() []size { return []size{{"XS", 20_000, 5}, {"S", 200_000, 5}, {"L", 1_500_000, 3}} }

func rows() []row {
	storageVersions := func(percent, input string, peers ...peer) row {
		return row{name: "migrate storage-versions, " + percent + " stale", input: input,
			args:  []string{"migrate", "storage-versions", "IN", "OUT"},
			peers: peers, memory: 64, perKey: 30, grows: true}
	}
	calico, small := []string{"migrate", "calico-v3", "IN", "OUT"}, []string{"XS", "S"}
	read := func(name string, peers ...peer) row {
		return row{name: name, input: "stale5", args: []string{name, "IN"}, peers: peers, memory: 64, perKey: 30}
	}
	get := func(asked string, seconds float64) row { // without a digest, because its check is not measured here
		args := append([]string{"get", "IN"}, strings.Fields(asked)...)
		return row{name: "get " + asked, input: "raw", args: args, seconds: seconds}
	}
	doctor := read("doctor", peer{peerHash, 2.5})
	doctor.memory, doctor.perKey = 128, 0
	return slices.Concat([]row{
		storageVersions("5 %", "stale5", peer{peerRestore, 1.0}, peer{peerB, 0}),
		storageVersions("0 %", "stale0", peer{peerB, 1.6}),
		storageVersions("25 %", "stale25", peer{peerB, 2.5}),
		{name: "compact", input: "stale5", args: []string{"compact", "IN", "OUT"},
			peers: []peer{{peerDefrag, 0.8}, {peerB, 0}}, memory: 64, perKey: 30},
		{name: "migrate calico-v3, 63 records", input: "calico", sizes: small, args: calico,
			peers: []peer{{peerB, 1.15}}, grows: true},
		{name: "migrate calico-v3, 1.5 records a key", input: "ipam", sizes: small, args: calico,
			peers: []peer{{peerB, 0}}, seconds: 20, memory: 150, grows: true},
		read("status", peer{peerHash, 1.5}, peer{peerStatus, 0}),
		read("keys", peer{peerHash, 1.5}, peer{peerAuger, 0}),
		read("sizes", peer{peerHash, 1.5}),
		doctor,
		read("verify", peer{peerHash, 1.3}, peer{peerCheck, 0}),
	}, []row{
		{name: "restore", input: "stale5", args: []string{"restore", "IN", "--data-dir", "OUT"},
			peers: []peer{{peerRestore, 0}, {peerB, 0}}, memory: 64, perKey: 30},
		{name: "save --data-dir", input: "member", args: []string{"save", "--data-dir", "IN", "OUT"},
			peers: []peer{{peerMember, 0}}, memory: 64, perKey: 30},
		{name: "salvage, no meta page", input: "ruin", sizes: small, args: []string{"salvage", "IN", "OUT"},
			peers: []peer{{peerHash, 0}}},
		get("pods -A", 1), get("pods -A -o name", 0.5), get("pods -A -o json", 4),
		get("pod/needle -n tenant-000", 0.05),
		{name: "delete 100,000 Events", input: "events", sizes: []string{"S"},
			args:  []string{"delete", "IN", "OUT", "events", "--all", "-A"},
			peers: []peer{{peerRestore, 1.3}}, memory: 64, perKey: 30},
		{name: "policy apply over all Pods", input: "stale0", sizes: small,
			args:  []string{"policy", "apply", "IN", "OUT", "-f", "testdata/policy.yaml"},
			peers: []peer{{peerRestore, 0}}, memory: 64, perKey: 30},
		{name: "kcp list", input: "kcp", sizes: small, args: []string{"kcp", "list", "IN"},
			peers: []peer{{peerB, 1.5}}},
		{name: "kcp extract", input: "kcp", sizes: small, args: []string{"kcp", "extract", kcptest.ManyName(7), "IN",
			"OUT"}, peers: []peer{{peerB, 1.5}}},
	})
}
