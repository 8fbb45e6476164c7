package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.etcd.io/etcd/client/pkg/v3/types"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/restore"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

func restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "restore a snapshot into the data directory of an etcd member",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift restore after.db --data-dir /var/lib/etcd --name n1
etcdshift restore after.db --data-dir /var/lib/etcd --name n1 --move-aside
etcdshift restore after.db --all members
etcdshift restore after.db --data-dir new.etcd --name m1 \
    --initial-cluster m1=http://10.0.0.1:2380,m2=http://10.0.0.2:2380`,
		UsageText: `Does the same as "etcdutl snapshot restore", by the same code and with its flags, for servers of etcd
3.5 to 3.7. --bump-revision and --mark-compacted are on by default. First it checks the whole file like "etcdshift
verify": etcdutl also restores damaged files, without some of their records. Names and URLs of members come from
SNAPSHOT, unless --initial-cluster is given.

The folder "member" appears in DIR only when it is complete, compared with SNAPSHOT and synced. An existing folder
"member" is refused, or kept as "member.old" with --move-aside; a data directory in use by an etcd is refused. Other
files in DIR stay. The owner of the new files is the owner of DIR; a new DIR has mode 0700.

--all restores each member into a folder DIR/NAME, to be copied to its machine. Restore all members from the same
file, and start them all.

--bump-revision and --mark-compacted make every client list again, so that no client misses a change. With
"--bump-revision 0" or "--mark-compacted=false" the revision stays.

Exit status: 0 restored, 1 failed, 2 usage, 3 refused, 130 interrupted. With any status except 0 there is no new
folder "member".`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data-dir", Usage: "restore into the data directory `DIR`"},
			&cli.StringFlag{Name: "all", Usage: "restore all members, each into a folder of `DIR` with its name"},
			&cli.StringFlag{Name: "name", Usage: "restore the member `NAME` (default: the only one)"},
			&cli.StringFlag{Name: "initial-cluster",
				Usage: "form a cluster of `NAME=URL,NAME=URL` (default: the members in SNAPSHOT)"},
			&cli.StringFlag{Name: "initial-advertise-peer-urls",
				Usage: "the peer `URLS` of the member, separated by commas (default: those in the cluster)"},
			&cli.StringFlag{Name: "initial-cluster-token", Value: defaultToken,
				Usage: "the same `TEXT` for all members of the cluster"},
			&cli.StringFlag{Name: "wal-dir", Usage: "restore the log into the new folder `DIR` (default: member/wal)"},
			&cli.Int64Flag{Name: "bump-revision", Value: transform.DefaultBumpRevision,
				Usage: "raise the revision by `N`"},
			&cli.BoolFlag{Name: "mark-compacted", Value: true,
				Usage: "mark all revisions up to the raised one as compacted"},
			&cli.StringFlag{Name: "etcd",
				Usage: "refuse a file on which etcd `VERSION`, such as 3.5.21, does not start"},
			&cli.BoolFlag{Name: "skip-hash-check",
				Usage: "restore a file with a wrong digest; all else is still checked"},
			&cli.BoolFlag{Name: "move-aside", Usage: "keep an existing folder \"member\" as \"member.old\""},
			&cli.StringFlag{Name: "owner",
				Usage: "give the new files to `USER` or USER:GROUP (default: the owner of DIR)"},
			maxExpandFlag(), textOrJSON(), quietFlag(),
		},
		Action: taking(runRestore),
	}
}

// restoredDocument is the document of restore -o json.
type restoredDocument struct {
	documentHead
	*restore.Result
	Warnings []string `json:"warnings"`
	others   bool     // the cluster has members that are not restored here
}

func runRestore(c *cli.Context, args []string) error {
	o, err := restoreOptions(c)
	if err != nil {
		return err
	}
	file, err := openWhole(c, args[0], "")
	if err != nil {
		return err
	}
	defer file.Close()
	s := file.Snapshot()
	cluster, err := s.Cluster(c.Context)
	if err != nil {
		return err
	}
	if err := restoreMembers(c, &o, cluster.Members); err != nil {
		return inFiles(err, args[0])
	}
	if err := checkEtcd(c, &cluster); err != nil {
		return err
	}
	phases := progress(c)
	o.Phase = func(name string) { phases.Phase(args[0] + ": " + name) }
	r, err := restore.Run(c.Context, s, o)
	phases.End()
	if err != nil {
		return restoreFailure(err)
	}
	in, err := file.input(c.Context)
	if err != nil && !errors.Is(err, snapshot.ErrDigest) {
		return err
	}
	doc := restoredDocument{document("RestoredSnapshot", in), r, listed(restoreWarnings(r)),
		strings.Count(o.Cluster, "=") > len(o.Members)}
	warn(c, doc.Warnings...)
	if wantsJSON(c) {
		return render.JSON(c.App.Writer, doc)
	}
	return printRestored(c, &doc)
}

// checkEtcd refuses a file on which the etcd of --etcd does not start.
func checkEtcd(c *cli.Context, st *snapshot.Status) error {
	release, err := etcdRelease(c)
	if err != nil || release == "" {
		return err
	}
	written := cmp.Or(st.StorageVersion, st.ClusterVersion)
	switch older, starts := st.StartsOn(release); {
	case !starts:
		err = fmt.Errorf("%s: etcd %s does not start on it: an etcd %s wrote it", c.Args().First(), release, written)
		return &failure{exitRefused, err, "start etcd " + written + " or a newer one on the data directory"}
	case older:
		warn(c, fmt.Sprintf("an etcd %s wrote the file; etcd %s starts, but supports no such downgrade", written,
			release))
	}
	return nil
}

// restoreFailure gives refusals their exit status.
func restoreFailure(err error) error {
	for _, refusal := range []error{snapshot.ErrDamaged, snapshot.ErrDigest, restore.ErrHasMember, restore.ErrRunning,
		restore.ErrLeft, restore.ErrWALDir, restore.ErrWALInside} {
		if errors.Is(err, refusal) {
			return &failure{exitRefused, err, hintFor(err)}
		}
	}
	return err
}

// restoreOptions reads the flags that need no snapshot.
func restoreOptions(c *cli.Context) (o restore.Options, err error) {
	name, n := commandPath(c), c.Int64("bump-revision")
	o = restore.Options{Token: c.String("initial-cluster-token"), MoveAside: c.Bool("move-aside"), Bump: n,
		SkipDigest: c.Bool("skip-hash-check")}
	switch {
	case (c.String("data-dir") == "") == (c.String("all") == ""):
		return o, usagef(name, "it takes --data-dir DIR for one member, or --all DIR")
	case c.IsSet("all") && (c.IsSet("name") || c.IsSet("initial-advertise-peer-urls") || c.IsSet("wal-dir")):
		return o, usagef(name, "--all restores all members: it takes no --name, --initial-advertise-peer-urls and "+
			"--wal-dir")
	case n < 0:
		return o, usagef(name, "--bump-revision is %d; it takes a number from 0", n)
	case !c.Bool("mark-compacted") && c.IsSet("bump-revision") && n > 0:
		return o, usagef(name, "--bump-revision takes --mark-compacted: otherwise clients miss the change")
	case !c.Bool("mark-compacted"):
		o.Bump = 0
	}
	if text := c.String("owner"); text != "" {
		if o.Owner, err = restore.ParseOwner(text); err != nil {
			return o, usagef(name, "--owner: %w", err)
		}
	}
	return o, nil
}

// The member of a snapshot that names none, with etcdutl's defaults.
const (
	defaultMember = "default"
	defaultPeer   = "http://localhost:2380"
	defaultToken  = "etcd-cluster"
)

// restoreMembers chooses the members to restore, and the cluster.
func restoreMembers(c *cli.Context, o *restore.Options, stored []snapshot.Member) error {
	known, cluster, _ := transform.Restorable(stored)
	o.Cluster = cmp.Or(c.String("initial-cluster"), cluster)
	if o.Cluster == "" {
		o.Cluster = cmp.Or(c.String("name"), defaultMember) + "=" +
			cmp.Or(c.String("initial-advertise-peer-urls"), defaultPeer)
	}
	urls, err := types.NewURLsMap(o.Cluster)
	switch {
	case err != nil && o.Cluster == cluster:
		return &failure{exitRefused, fmt.Errorf("its members form no cluster: %w", err),
			"name the members with --initial-cluster"}
	case err != nil:
		return usagef(commandPath(c), "--initial-cluster: %w", err)
	}
	names := slices.Sorted(maps.Keys(urls))
	if dir := c.String("all"); dir != "" {
		for _, name := range names {
			if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) || name == "." {
				err := fmt.Errorf("member %q: a folder cannot have this name", name)
				return &failure{exitRefused, err,
					"restore each member with --data-dir and --name"}
			}
			o.Members = append(o.Members, restore.Member{Name: name, PeerURLs: urls[name].StringSlice(),
				DataDir: filepath.Join(dir, name)})
		}
		return nil
	}
	name := c.String("name")
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	peers, found := urls[name]
	if !found {
		return unknownMember(c, name, names, len(known) > 0 && !c.IsSet("initial-cluster"))
	}
	m := restore.Member{Name: name, PeerURLs: peers.StringSlice(), DataDir: c.String("data-dir"),
		WALDir: c.String("wal-dir")}
	if text := c.String("initial-advertise-peer-urls"); text != "" {
		advertised, err := types.NewURLs(strings.Split(text, ","))
		if err != nil {
			return usagef(commandPath(c), "--initial-advertise-peer-urls: %w", err)
		}
		if !slices.Equal(advertised.StringSlice(), m.PeerURLs) { // both are sorted
			return usagef(commandPath(c), "--initial-advertise-peer-urls is %s; in the cluster, member %s has %s",
				text, name, strings.Join(m.PeerURLs, ","))
		}
	}
	o.Members = []restore.Member{m}
	return nil
}

// unknownMember is the usage error for a missing or unknown --name.
func unknownMember(c *cli.Context, name string, names []string, fromFile bool) error {
	where := "--initial-cluster"
	if fromFile {
		where = "the snapshot"
	}
	for i := range names {
		names[i] = render.Printable(names[i])
	}
	err := usagef(commandPath(c), "%s has the members %s: --name says which is restored here", where,
		strings.Join(names, ", "))
	if name != "" {
		err = usagef(commandPath(c), "%s has no member %q, only %s", where, name, strings.Join(names, ", "))
	}
	return &failure{exitUsage, err, "--all DIR restores all of them; --initial-cluster names other members"}
}

// restoreWarnings names what etcd may complain about.
func restoreWarnings(r *restore.Result) (lines []string) {
	for _, m := range r.Members {
		if m.Mode != "" {
			lines = append(lines, fmt.Sprintf("%s has mode %s; etcd wants 0700: chmod 700 %s", m.DataDir, m.Mode,
				transform.ShellWord(m.DataDir)))
		}
	}
	return lines
}

func printRestored(c *cli.Context, doc *restoredDocument) error {
	lines := stream.Mapped(doc.Members, func(m restore.Restored) string {
		line := fmt.Sprintf("%s: member %s of %s, revision %d, hashkv %s", m.DataDir, m.Name, doc.Input.Path,
			doc.Revision, doc.HashKV)
		if m.MovedTo != "" {
			line += "; the old data is in " + m.MovedTo
		}
		return line
	})
	if doc.others {
		lines = append(lines, fmt.Sprintf("Restore every other member from the same file (sha256 %s), then start all.",
			doc.Input.SHA256))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(c.App.Writer, render.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}
