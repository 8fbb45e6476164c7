package transform

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/snapshot"
)

// restoreCommands are the etcdutl calls that bring out back, one for each member that the snapshot knows; a snapshot without
// members (a single restored one, etcd 3.4) gets one call to complete. Revisions are raised and marked compacted so that no
// client goes on from a revision that it saw after the snapshot was taken (etcd#16028).
func restoreCommands(out string, members []snapshot.Member, bump int64) []string {
	if bump == 0 {
		bump = DefaultBumpRevision
	}
	common := fmt.Sprintf("etcdutl snapshot restore %s --bump-revision %d --mark-compacted", quote(out), bump)
	if len(members) == 0 {
		return []string{common + " --data-dir /var/lib/etcd"}
	}
	// A member that was added and never started has no name; etcdutl refuses it, and it has nothing to restore.
	members = slices.DeleteFunc(slices.Clone(members), func(m snapshot.Member) bool { return m.Name == "" })
	var cluster []string
	for _, m := range members {
		for _, url := range m.PeerURLs {
			cluster = append(cluster, m.Name+"="+url)
		}
	}
	commands := make([]string, 0, len(members))
	for _, m := range members {
		commands = append(commands, fmt.Sprintf("%s --data-dir /var/lib/etcd --name %s --initial-cluster %s --initial-advertise-peer-urls %s",
			common, quote(m.Name), quote(strings.Join(cluster, ",")), quote(strings.Join(m.PeerURLs, ","))))
	}
	return commands
}

// plain is what a shell takes as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote makes one word of s for a POSIX shell: names in a snapshot are not to be trusted with a command line.
func quote(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s // else a flag; only the path of the output can begin so
	}
	if plain.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
