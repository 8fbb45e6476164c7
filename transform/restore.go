package transform

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/snapshot"
)

// addRestore adds the commands that restore the members, except for those in here.
func (r *Report) addRestore(o Options, members []snapshot.Member, here []string) {
	var left []snapshot.Member
	out, copied := o.Out, "restore every member from this one file: copy it to each and compare its SHA-256 (%s)"
	if o.Upload != nil { // etcdutl reads files
		out = path.Base(out)
		copied = "restore every member from this one object: copy it to a file on each, such as " +
			strings.ReplaceAll(ShellWord("./"+out), "%", "%%") + ", and compare its SHA-256 (%s)"
	}
	r.Restore, left = restoreCommands(out, members, here, o.BumpRevision)
	for _, m := range members {
		if m.Learner {
			r.AddStep("member %s was a learner without a vote; the commands make a voting member of it",
				cmp.Or(m.Name, m.ID))
		}
	}
	for _, m := range left {
		if m.Name == "" {
			continue // the member was added and never started: there is nothing to restore
		}
		r.AddStep("the commands leave out member %q: etcdutl takes no such name or URLs from a command line (name "+
			"%q, peer URLs %q)", m.ID, m.Name, m.PeerURLs)
	}
	if len(r.Restore) == 0 {
		return
	}
	r.AddStepBefore(copied, r.Output.SHA256)
	r.AddStepBefore("restore with etcdutl 3.5.10 or later, or 3.4.27 or later of the 3.4 line: older ones do not " +
		"know --bump-revision and --mark-compacted")
}

// restoreCommands returns the etcdutl calls that restore out, one for each member, by name; a
// snapshot without members (a restored one, etcd 3.4) gets one call to complete. Revisions are
// raised and marked compacted, so that no client continues from a revision after the snapshot
// (etcd#16028). The members in here are restored already. left are the members that no command can
// name.
func restoreCommands(out string, members []snapshot.Member, here []string, bump int64) (
	commands []string, left []snapshot.Member) {
	common := fmt.Sprintf("etcdutl snapshot restore %s --bump-revision %d --mark-compacted", ShellWord(out), bump)
	named, cluster, left := Restorable(members)
	if len(named) == 0 && len(here) == 0 {
		return []string{common + " --data-dir /var/lib/etcd"}, left
	}
	commands = []string{}
	for _, m := range named {
		if slices.Contains(here, m.Name) {
			continue
		}
		commands = append(commands, fmt.Sprintf("%s --data-dir /var/lib/etcd --name %s --initial-cluster %s "+
			"--initial-advertise-peer-urls %s",
			common, ShellWord(m.Name), ShellWord(cluster), ShellWord(strings.Join(m.PeerURLs, ","))))
	}
	return commands, left
}

// Restorable returns the members that flags of etcdutl can name, by name, and --initial-cluster
// with all of them. left are the other members.
func Restorable(members []snapshot.Member) (named []snapshot.Member, cluster string, left []snapshot.Member) {
	var parts []string
	byName := func(a, b snapshot.Member) int { return cmp.Compare(a.Name, b.Name) }
	for _, m := range slices.SortedStableFunc(slices.Values(members), byName) {
		if !restorable(m) {
			left = append(left, m)
			continue
		}
		named = append(named, m)
		for _, url := range m.PeerURLs {
			parts = append(parts, m.Name+"="+url)
		}
	}
	return named, strings.Join(parts, ","), left
}

// restorable reports whether the flags of etcdutl can express the member's name and URLs:
// --initial-cluster has the form NAME=URL,NAME=URL, and the command must be printable.
func restorable(m snapshot.Member) bool {
	return m.Name != "" && !strings.HasPrefix(m.Name, "-") && !strings.ContainsAny(m.Name, ",=") &&
		isPrintable(m.Name) &&
		!slices.ContainsFunc(m.PeerURLs, func(url string) bool {
			return strings.Contains(url, ",") ||
				!isPrintable(url)
		})
}

// plain matches text that needs no quotes in a shell.
var plain = pattern.New(`^[A-Za-z0-9_@%+=:,./-]+$`)

// ShellWord quotes s as one word of a POSIX shell, for the commands in a report: a name in a
// snapshot is not trusted. An unprintable character becomes a question mark; the command then finds
// no such name.
func ShellWord(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s // otherwise a flag
	}
	if plain().MatchString(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if !shows(r) {
			return '?'
		}
		return r
	}, s)
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !shows(r) })
}

func shows(r rune) bool { return unicode.IsPrint(r) && r != unicode.ReplacementChar }
