package transform

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/etcdshift/etcdshift/snapshot"
)

// restoreCommands are the etcdutl calls that bring out back, one for each member that the snapshot knows; a snapshot without
// members (a single restored one, etcd 3.4) gets one call to complete. Revisions are raised and marked compacted so that no
// client goes on from a revision that it saw after the snapshot was taken (etcd#16028). left are the members that no command can name.
func restoreCommands(out string, members []snapshot.Member, bump int64) (commands []string, left []snapshot.Member) {
	common := fmt.Sprintf("etcdutl snapshot restore %s --bump-revision %d --mark-compacted", ShellWord(out), bump)
	var named []snapshot.Member
	var cluster []string
	for _, m := range members {
		if !restorable(m) {
			left = append(left, m)
			continue
		}
		named = append(named, m)
		for _, url := range m.PeerURLs {
			cluster = append(cluster, m.Name+"="+url)
		}
	}
	if len(named) == 0 {
		return []string{common + " --data-dir /var/lib/etcd"}, left
	}
	for _, m := range named {
		commands = append(commands, fmt.Sprintf("%s --data-dir /var/lib/etcd --name %s --initial-cluster %s --initial-advertise-peer-urls %s",
			common, ShellWord(m.Name), ShellWord(strings.Join(cluster, ",")), ShellWord(strings.Join(m.PeerURLs, ","))))
	}
	return commands, left
}

// restorable says whether etcdutl takes the member's name and URLs from a command line that a terminal can show. --initial-cluster is NAME=URL,NAME=URL.
func restorable(m snapshot.Member) bool {
	return m.Name != "" && !strings.HasPrefix(m.Name, "-") && !strings.ContainsAny(m.Name, ",=") && isPrintable(m.Name) &&
		!slices.ContainsFunc(m.PeerURLs, func(url string) bool { return strings.Contains(url, ",") || !isPrintable(url) })
}

// plain is what a shell takes as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// ShellWord makes one word of s for a POSIX shell, for the commands that a report tells to run next. Names in a snapshot are not to be
// trusted with a command line. What a terminal must not get is a question mark, with which the command finds nothing: printed with
// escapes, as other text is, it would no longer be quoted for a shell.
func ShellWord(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s // else a flag; only the path of the output can begin so
	}
	if plain.MatchString(s) {
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

// shows says whether r is printed as it is.
func shows(r rune) bool { return unicode.IsPrint(r) && r != unicode.ReplacementChar }
