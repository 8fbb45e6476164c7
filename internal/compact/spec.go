// Package compact removes the history of a snapshot and minimizes the size of the file.
//
// Invariants, each with a test: the output equals, entry by entry, the storage of a real etcd after
// "etcdctl compact" and "etcdctl defrag" (Served), is no larger, and starts again if writes were
// refused for lack of space (NoSpace).
// refused for want of space (NoSpace).
package compact

import (
	"cmp"
	"context"
	"strconv"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "compact".
var Spec = transform.Spec{
	Name:  "compact",
	Usage: "remove the history and free pages, for the smallest file",
	Examples: `etcdshift compact full.db small.db
etcdshift compact --disarm member/snap/db small.db
etcdshift compact --keep-revisions 1000 full.db small.db`,
	Text: `Compacts and defragments a file, like "etcdctl compact" and "etcdctl defrag" on a running etcd:
overwritten values and deletions are removed, also from free pages; live keys keep their values and revisions;
leases, users and everything else stay. If etcd does not start after "mvcc: database space exceeded", use --disarm:
the restored etcd accepts writes again. A second run changes nothing.`,
	Codes:    []*finding.Code{codeAlready},
	Settles:  map[string]string{codeAlready.Name: "ask for fewer with --keep-revisions"},
	Sections: []transform.Section{&Section{}},
	Unread:   true,
	Flags: []transform.Flag{
		{Name: "keep-revisions", Usage: "also keep the `N` revisions before the current one, for watches that began " +
			"earlier (default: none)"},
		{Name: "disarm", Default: false, Usage: "remove NOSPACE alarms; with an alarm the restored etcd would " +
			"refuse writes"},
	},
	New: func(_ context.Context, a *transform.Args) (transform.Transform, error) {
		keep, err := strconv.ParseInt(cmp.Or(a.String("keep-revisions"), "0"), 10, 64)
		if err != nil || keep < 0 {
			return nil, transform.Usagef("--keep-revisions is %q; it takes a number, 0 or more",
				a.String("keep-revisions"))
		}
		return &Compact{Keep: keep, Disarm: a.Bool("disarm")}, nil
	},
}
