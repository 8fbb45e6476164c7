package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

func clusterListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "list the logical clusters and the orphans of shards",
		ArgsUsage: "SHARD...",
		Description: `etcdshift kcp list root.db
etcdshift kcp list root.db shard-1.db --cache cache.db
etcdshift kcp list -o json root.db | jq -r '.orphans[].keys[]'`,
		UsageText: `Lists the logical clusters of kcp that live on each SHARD, with their contents, needs and owners.
Then it lists, if there are any: orphans (keys of logical clusters that do not live on that shard, left by a live
migration); stale copies in a cache (the logical cluster does not live on the shard of the copy); keys of no logical
cluster; and records that are unreadable or contradict their key.

With several shards it also shows the home of the owner of an orphan, logical clusters that live on two shards, and
stale copies. A cache in the etcd of a shard is found there; a separate cache server needs --cache.

Exit status: 0 read, regardless of findings; 1 unreadable, damaged or no shard of kcp; 2 usage; 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringSliceFlag{Name: "cache", Usage: "read the cache server's snapshot `FILE` too; may be repeated"},
			outputFlag("table", "wide", "json")),
		Action: taking(runClusterList),
	}
}

// surveyed is a file after reading.
type surveyed struct {
	kcp.Named
	input inputInfo
}

func runClusterList(c *cli.Context, shards []string) error {
	caches := c.StringSlice("cache")
	if slices.Contains(shards, "") { // an unset shell variable
		return usagef(commandPath(c), "takes SHARD...; got %q", shards)
	}
	for _, list := range [][]string{shards, caches} {
		if err := once(c, list); err != nil {
			return err
		}
	}
	paths := slices.Clone(shards)
	for _, cache := range caches {
		if indexOfFile(shards, cache) < 0 { // otherwise shard and cache share one etcd
			paths = append(paths, cache)
		}
	}
	return readSnapshots(c, paths, func(files []*opened) error {
		read := make([]surveyed, len(files))
		for i, o := range files {
			if err := read[i].read(c, o); err != nil {
				return inFiles(err, paths[i])
			}
			if i < len(shards) {
				if err := read[i].holds(true); err != nil {
					return err
				}
			}
		}
		for _, cache := range caches {
			if err := read[indexOfFile(paths, cache)].holds(false); err != nil {
				return err
			}
		}
		return printClusterList(c, read, len(shards))
	})
}

// indexOfFile returns the index of a path to the same file, -1 for none.
func indexOfFile(paths []string, path string) int {
	return slices.IndexFunc(paths, func(other string) bool { return samePath(other, path) })
}

// once refuses a file named twice: its content would count twice.
func once(c *cli.Context, paths []string) error {
	for i, path := range paths {
		if j := indexOfFile(paths[:i], path); j >= 0 {
			return usagef(commandPath(c), "%q and %q are the same file", paths[j], path)
		}
	}
	return nil
}

func (f *surveyed) read(c *cli.Context, o *opened) (err error) {
	f.Path = o.Snapshot().Path()
	defer progress(c).Phase("reading " + f.Path).Of(part(2, 1, o)).End()
	if f.File, err = kcp.ReadChecked(c.Context, o.Reader); err == nil {
		f.input, err = o.input(c.Context)
	}
	return err
}

// holds returns an error if a file is not of the given kind.
func (f surveyed) holds(shard bool) error {
	var err error
	hint := ""
	switch {
	case shard && len(f.Shards) == 0:
		_, err = f.Shard(nil)
		if len(f.Caches) > 0 {
			hint = "give the snapshot of a cache server with --cache, beside that of a shard"
		}
	case !shard && len(f.Caches) == 0:
		_, err = f.Cache(nil)
		if len(f.Shards) > 0 {
			hint = "give the snapshot of a shard as an argument, without --cache"
		}
	}
	if err == nil {
		return nil
	}
	return &failure{exitFailed, &fileError{[]string{f.Path}, err}, hint}
}

func printClusterList(c *cli.Context, read []surveyed, shards int) error {
	var of, with []kcp.Named
	for i, f := range read {
		if i < shards {
			of = append(of, f.Named)
		}
		if len(f.Caches) > 0 {
			with = append(with, f.Named)
		}
	}
	found := kcp.Survey(of, with)
	if wantsJSON(c) {
		return render.JSON(c.App.Writer, clusterListOf(read, found))
	}
	return printSurvey(c.App.Writer, read, found, c.String("output") == "wide")
}

// clusterList is the document of kcp list -o json. Lists are never null.
type clusterList struct {
	answerHead
	Inputs   []listInput    `json:"inputs"`
	Flavour  keys.Flavour   `json:"flavour"` // of all files
	Prefixes []keys.Storage `json:"prefixes"`
	Clusters []listCluster  `json:"clusters"`      // by name, then in the order of the files
	Orphans  []listOrphan   `json:"orphans"`       // keys of logical clusters that do not live where the keys are
	Absent   []string       `json:"absentShards"`  // registered shards without a given file
	Doubled  []string       `json:"doubledShards"` // shard names of several files
	// copies of logical clusters that do not live on the shard they were copied from
	Stale     []listCopy    `json:"stale"`
	Unchecked []listCopy    `json:"unchecked"` // copies of logical clusters with shards outside the given files
	Unknown   []string      `json:"unknown"`   // keys of no logical cluster, of all files
	Reasons   []listUnknown `json:"unknownReasons"`
	Others    []listOther   `json:"others"`   // storages in the files that are not kcp's
	Problems  []listProblem `json:"problems"` // unreadable records, and records that contradict their keys
}

// listInput is one of the files.
type listInput struct {
	inputInfo
	Shard    string         `json:"shard"`   // name of the shard; "" of a cache, and if unknown
	Partial  bool           `json:"partial"` // not a whole shard: reported orphans may not be orphans
	Flavour  keys.Flavour   `json:"flavour"`
	Prefixes []keys.Storage `json:"prefixes"`
}

type listCluster struct {
	Name          string         `json:"name"`
	Path          string         `json:"path"`
	kcp.Place                    // where the logical cluster lives
	SaidShard     string         `json:"saidShard"` // shard recorded in its LogicalCluster
	UID           string         `json:"uid"`
	Phase         string         `json:"phase"`
	Keys          int            `json:"keys"`        // live records
	Bytes         int64          `json:"bytes"`       // of whole keys and stored values
	Owner         *kcp.Owner     `json:"owner"`       // the Workspace it belongs to; null if there is none
	System        bool           `json:"system"`      // a part of kcp that each shard has
	Inactive      bool           `json:"inactive"`    // fenced off (core.kcp.io/inactive)
	Migrating     string         `json:"migrating"`   // name of the migration
	Terminating   string         `json:"terminating"` // time of the deletion
	OwnerGone     bool           `json:"ownerGone"`   // its owner should be in the files, but is missing
	Elsewhere     []kcp.Place    `json:"elsewhere"`   // other places where it lives
	Children      []kcp.Child    `json:"children"`
	Identities    []kcp.Identity `json:"identities"`  // of APIExports that it binds or has keys under
	Definitions   []kcp.Needed   `json:"definitions"` // in system:bound-crds that its APIBindings need
	Exports       []kcp.Export   `json:"exports"`     // that lie in it
	Resources     []kcp.Resource `json:"resources"`
	Undecryptable int            `json:"undecryptable"` // encrypted records that were not decrypted
}

type listOrphan struct {
	Name   string `json:"name"`
	PathOf string `json:"pathOf"` // the logical cluster whose path the name is; "" for none
	kcp.Place
	LivesOn       []string       `json:"livesOn"`   // shards of these files
	SaidShard     string         `json:"saidShard"` // shard recorded in its Workspace
	Bytes         int64          `json:"bytes"`
	Undecryptable int            `json:"undecryptable"` // encrypted records that were not decrypted
	Resources     []kcp.Resource `json:"resources"`
	Keys          []string       `json:"keys"`
}

// listCopy is the copy of a logical cluster in a cache.
type listCopy struct {
	Cluster       string         `json:"cluster"`
	Shard         string         `json:"shard"` // source of the copy
	File          string         `json:"file"`  // of the cache
	Prefix        string         `json:"prefix"`
	LivesOn       []string       `json:"livesOn"` // shards of these files
	Bytes         int64          `json:"bytes"`
	Undecryptable int            `json:"undecryptable"` // encrypted records that were not decrypted
	Resources     []kcp.Resource `json:"resources"`
	Keys          []string       `json:"keys"`
}

type listUnknown struct {
	File string `json:"file"`
	kcp.Unknown
}

// listOther is a storage that is not kcp's.
type listOther struct {
	File string `json:"file"`
	keys.Storage
	kcp.Amount
}

type listProblem struct {
	File    string `json:"file"`
	Cluster string `json:"cluster"`
	Key     string `json:"key"`
	Code    string `json:"code"` // etcdshift explain CODE
	Reason  string `json:"reason"`
}

func clusterListOf(read []surveyed, found *kcp.Installation) clusterList {
	out := clusterList{answerHead: answerTo("LogicalClusterList"), Absent: listed(found.Absent),
		Doubled: listed(found.Doubled)}
	for _, f := range read {
		for _, s := range f.Storages {
			if !slices.ContainsFunc(out.Prefixes, func(o keys.Storage) bool {
				return o.Prefix == s.Prefix &&
					o.Flavour == s.Flavour
			}) {
				out.Prefixes = append(out.Prefixes, s)
			}
		}
		in := listInput{inputInfo: f.input, Prefixes: listed(f.Storages),
			Flavour: keys.NewLayouts(f.Storages...).Flavour()}
		if len(f.Shards) == 1 {
			in.Shard = f.Shards[0].Name
		}
		in.Partial = slices.ContainsFunc(f.Shards, func(s *kcp.Shard) bool { return s.Partial })
		out.Inputs = append(out.Inputs, in)
		for _, u := range f.Unknown {
			out.Unknown = append(out.Unknown, u.Key)
			out.Reasons = append(out.Reasons, listUnknown{f.Path, u})
		}
		for _, o := range f.Others {
			out.Others = append(out.Others, listOther{f.Path, o.Storage, o.Amount})
		}
	}
	out.Clusters = stream.Mapped(found.Clusters, listClusterOf)
	out.Orphans = stream.Mapped(found.Orphans, func(o kcp.Stray) listOrphan {
		return listOrphan{o.Name, o.PathOf, o.Place, o.LivesOn, o.Said, o.Bytes, o.Undecryptable,
			listed(o.Resources), listed(o.Keys)}
	})
	out.Stale, out.Unchecked = stream.Mapped(found.Stale, listCopyOf), stream.Mapped(found.Unchecked, listCopyOf)
	out.Flavour, out.Prefixes = keys.NewLayouts(out.Prefixes...).Flavour(), listed(out.Prefixes)
	out.Unknown, out.Reasons = listed(out.Unknown), listed(out.Reasons)
	out.Others, out.Problems = listed(out.Others), problemsOf(read)
	return out
}

func listClusterOf(c kcp.Resident) listCluster {
	return listCluster{
		Name: c.Name, Path: c.Cluster.Path, Place: c.Place, SaidShard: c.ShardName, UID: c.UID, Phase: c.Phase,
		Keys: c.Keys, Bytes: c.Bytes, Owner: c.Owner, System: c.System, Inactive: c.Inactive, Migrating: c.Migrating,
		Terminating: c.Terminating, OwnerGone: c.OwnerGone, Elsewhere: listed(c.Elsewhere),
		Children:   listed(c.Children),
		Identities: listed(c.Identities), Definitions: listed(c.Definitions), Exports: listed(c.Exports),
		Resources: listed(c.Resources), Undecryptable: c.Undecryptable,
	}
}

func listCopyOf(s kcp.Stale) listCopy {
	return listCopy{s.Cluster, s.Copy.Shard, s.Path, s.Place.Prefix, s.LivesOn, s.Bytes, s.Undecryptable,
		listed(s.Resources), listed(s.Keys)}
}

// problemsOf returns the problems of all files, ordered by file, storage and logical cluster.
func problemsOf(read []surveyed) []listProblem {
	out := []listProblem{}
	for _, f := range read {
		add := func(cluster string, problems []finding.Finding) {
			for _, p := range problems {
				out = append(out, listProblem{f.Path, cluster, p.Key, p.Code.Name, p.Reason})
			}
		}
		for _, s := range f.Shards {
			for _, c := range s.Clusters {
				add(c.Name, c.Problems)
			}
			for _, o := range s.Orphans {
				add(o.Name, o.Problems)
			}
		}
		for _, cache := range f.Caches {
			add("", cache.Own.Problems)
			for _, c := range cache.Copies {
				add(c.Cluster, c.Problems)
			}
		}
	}
	return out
}

// clusterCommand is the group for logical clusters of kcp, with the first example of each command.
func clusterCommand(specs []transform.Spec) *cli.Command {
	sub := append([]*cli.Command{clusterListCommand()}, specCommands(specs, transform.GroupKCP)...)
	sub = append(sub, clusterVerifyCommand())
	var examples []string
	for _, c := range sub {
		c.Action = withShardNames(c.Action)
		first, _, _ := strings.Cut(c.Description, "\n")
		examples = append(examples, first)
	}
	return &cli.Command{
		Name:        transform.GroupKCP,
		Usage:       "list, move and repair logical clusters of kcp",
		Description: strings.Join(examples, "\n"),
		Subcommands: sub,
	}
}

// moveOrder is in the help of each command of a move.
const moveOrder = `

For a move, stop all front-proxies first, then kcp on both shards and the cache server; restore; start the etcds, the
cache server and the shards; start the front-proxies last. A front-proxy that keeps running sends requests to the old
shard for a minute or more.`

// withShardNames checks the shard names of flags before an action.
func withShardNames(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		for _, flag := range []string{"as-shard", "from-shard", "to-shard"} {
			if name := c.String(flag); name != "" && !namesShard().MatchString(name) {
				return usagef(commandPath(c), "--%s is %q; the name of a shard is made of 1 to 61 of a-z, 0-9, - and :",
					flag, name)
			}
		}
		return action(c)
	}
}

// namesShard matches shard names accepted by kcp's cache server (pkg/cache/server/handler.go).
var namesShard = pattern.New(`^[a-z0-9:-]{1,61}$`)
