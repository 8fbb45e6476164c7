package kcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
)

// Errors for a file with no shard or cache, or with more than one.
var (
	ErrNoShard = finding.WithHint(errors.New("no shard of kcp"),
		"\"etcdshift status\" shows the contents of a file; name an unusual storage prefix with --prefix")
	ErrSeveralShards = finding.WithHint(errors.New("several shards of kcp in one file"),
		"choose one with --prefix")
	ErrNoCache = finding.WithHint(errors.New("no cache of kcp"),
		"\"etcdshift status\" shows the contents of a file; name an unusual storage prefix with --prefix")
	ErrSeveralCaches = finding.WithHint(errors.New("several caches of kcp in one file"),
		"choose one with --prefix")
	ErrNoCluster = finding.WithHint(errors.New("no such logical cluster"),
		"\"etcdshift kcp list\" lists the logical clusters of a file, and the orphans of others")
	// ErrSplit is returned if another storage without definitions begins below the prefix of a
	// shard or a cache, such as a prefix named with --prefix: its records of a logical cluster
	// would be missed.
	ErrSplit = finding.WithHint(errors.New("a part of the storage is taken for another storage"),
		"leave --prefix out, or give the whole prefix that \"etcdshift status\" prints")
)

// Shard returns the shard of the file, below one of prefixes if prefixes are given. ErrNoShard
// describes the contents of the file; for ErrSeveralShards the caller must name a prefix.
func (f *File) Shard(prefixes []string) (*Shard, error) {
	return only(f, f.Shards, func(s *Shard) string { return s.Prefix }, prefixes, ErrNoShard, ErrSeveralShards)
}

// Cache returns the cache of the file, as Shard does. Errors wrap ErrNoCache and ErrSeveralCaches.
func (f *File) Cache(prefixes []string) (*Cache, error) {
	return only(f, f.Caches, func(c *Cache) string { return c.Prefix }, prefixes, ErrNoCache, ErrSeveralCaches)
}

func only[T any](f *File, all []*T, prefix func(*T) string, prefixes []string, none, several error) (*T, error) {
	var found []*T
	var names []string
	for _, s := range all {
		if len(prefixes) == 0 || slices.Contains(prefixes, prefix(s)) {
			found, names = append(found, s), append(names, fmt.Sprintf("%q", prefix(s)))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %s", none, f.holds())
	}
	if err := f.checkSplit(); err != nil {
		return nil, err
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("%w, below %s", several, strings.Join(names, " and "))
	}
	return found[0], nil
}

func (f *File) checkSplit() error {
	var whole, below []string
	for _, o := range f.Others {
		below = append(below, o.Prefix)
	}
	for _, s := range f.Shards {
		whole = append(whole, s.Prefix)
		if len(s.System) == 0 {
			below = append(below, s.Prefix)
		}
	}
	for _, c := range f.Caches {
		whole = append(whole, c.Prefix)
	}
	for _, prefix := range whole {
		for _, other := range below {
			if strings.HasPrefix(other, prefix+"/") {
				return fmt.Errorf("%w: %q is below %q; name the prefix of the shard or the cache, and no part of it",
					ErrSplit, other, prefix)
			}
		}
	}
	return nil
}

// holds describes the contents of a file.
func (f *File) holds() string {
	if len(f.Storages) == 0 {
		return "nothing that is known lies in the file"
	}
	var parts []string
	for _, s := range f.Storages {
		parts = append(parts, fmt.Sprintf("%s below %q", s.Flavour, s.Prefix))
	}
	return "the file holds " + strings.Join(parts, " and ")
}

// Find returns the logical cluster with the given name that lives on the shard. ErrNoCluster
// suggests similar names and matching paths.
func (s *Shard) Find(name string) (*Cluster, error) {
	if c := s.Cluster(name); c != nil {
		return c, nil
	}
	switch o, c := s.Orphan(name), s.Home(name); {
	case o == nil:
	case c != nil:
		return nil, fmt.Errorf("%w: %q is the path of %q, which is the name to give; keys that lie under the path: %d",
			ErrNoCluster, name, c.Name, o.Amount.Keys)
	default:
		return nil, fmt.Errorf("%w: %q does not live on this shard; keys of it that are left here (orphans): %d",
			ErrNoCluster, name, o.Amount.Keys)
	}
	for _, c := range s.Clusters {
		if c.Path != "" && c.Path == name {
			return nil, fmt.Errorf("%w: %q is the path of %q, which is the name to give", ErrNoCluster, name, c.Name)
		}
		if err := s.elsewhere(c, name); err != nil {
			return nil, err
		}
	}
	switch like := s.similar(name); len(like) {
	case 0:
		return nil, fmt.Errorf("%w: %q", ErrNoCluster, name)
	case 1:
		return nil, fmt.Errorf("%w: %q; there is %s", ErrNoCluster, name, like[0])
	default:
		return nil, fmt.Errorf("%w: %q; there are %s", ErrNoCluster, name, strings.Join(like, ", "))
	}
}

// elsewhere returns an error if a Workspace in c names a logical cluster with the given name or
// path.
func (s *Shard) elsewhere(c *Cluster, name string) error {
	path := c.Path
	if c.Name == rootCluster {
		path = rootCluster
	}
	for _, w := range c.Workspaces {
		on := fmt.Sprintf("lives on shard %q, as its Workspace %q says", w.ShardName, w.Name)
		if w.ShardName == "" || w.ShardName == s.Name {
			on = fmt.Sprintf("does not live on this shard, where its Workspace %q is", w.Name)
		}
		switch {
		case w.Cluster == "":
		case w.Cluster == name:
			return fmt.Errorf("%w: %q %s", ErrNoCluster, name, on)
		case path != "" && path+":"+w.Name == name:
			return fmt.Errorf("%w: %q is the path of %q, which %s", ErrNoCluster, name, w.Cluster, on)
		}
	}
	return nil
}

// similar returns similar names of logical clusters, with their paths.
func (s *Shard) similar(name string) (like []string) {
	const most = 5
	for _, c := range s.Clusters {
		end := c.Path[strings.LastIndexByte(c.Path, ':')+1:]
		if name != "" && len(like) < most && (strings.HasPrefix(c.Name, name) || strings.HasPrefix(name, c.Name) ||
			end == name) {
			text := fmt.Sprintf("%q", c.Name)
			if c.Path != "" {
				text += " (" + c.Path + ")"
			}
			like = append(like, text)
		}
	}
	return like
}

// Called returns the name of the shard, or the path of its file.
func (p Place) Called() string {
	if p.Shard == "" {
		return p.Path
	}
	return p.Shard
}

// called returns the names of the shards; the list is never nil.
func called(places []Place) []string {
	names := []string{}
	for _, p := range places {
		names = append(names, p.Called())
	}
	return names
}

// Residence lists the shards on which a logical cluster lives.
func Residence(shards []string) string {
	if len(shards) == 0 {
		return "none that was given"
	}
	return strings.Join(shards, ",")
}

// Called returns the name of the logical cluster, and its path if known.
func (r Resident) Called() string {
	if r.Cluster.Path == "" {
		return r.Name
	}
	return r.Name + " (" + r.Cluster.Path + ")"
}

// Contents counts the objects of each type in a sentence.
func Contents(resources []Resource) string {
	var parts []string
	for _, r := range resources {
		parts = append(parts, fmt.Sprintf("%d %s", r.Keys, r.Resource))
	}
	return strings.Join(parts, ", ")
}

// Findings returns the findings about a logical cluster, in a fixed order. Their reasons are
// sentences without a subject.
func (r Resident) Findings() []*finding.Finding {
	return slices.Concat(r.aboutItself(), r.aboutChildren(), r.aboutTypes())
}

func (r Resident) because(code *finding.Code, format string, args ...any) *finding.Finding {
	return code.Because(format, args...).At(string(LogicalClusterKey(r.Prefix, r.Name)))
}

func (r Resident) aboutItself() (all []*finding.Finding) {
	if r.Terminating != "" {
		all = append(all, r.because(CodeClusterTerminating, "is being deleted since %s", r.Terminating))
	}
	if r.Migrating != "" {
		all = append(all, r.because(CodeClusterMigrating, "a live migration has it: %s", r.Migrating))
	}
	if len(r.Elsewhere) > 0 {
		all = append(all, r.because(CodeClusterTwice, "lives %s too",
			strings.Join(distinctNames(slices.Concat([]Place{r.Place}, r.Elsewhere)), " and ")))
	}
	if r.ShardName != "" && r.Shard != "" && r.ShardName != r.Shard {
		all = append(all, r.because(CodeClusterMisnamed,
			"lives on shard %s and believes to live on %s, until kcp corrects that", r.Shard, r.ShardName))
	}
	if r.OwnerGone {
		all = append(all, r.because(CodeWorkspaceGone, "belongs to the Workspace %s in %s, which is not there",
			r.Owner.Name, r.Owner.Cluster))
	}
	return all
}

func (r Resident) aboutChildren() (all []*finding.Finding) {
	keys := map[string]string{}
	for _, w := range r.Workspaces {
		keys[w.Name] = w.Key
	}
	for _, h := range r.Children {
		if !h.Astray {
			continue
		}
		kcp := ""
		if h.Stuck {
			kcp = ", and kcp leaves the Workspace as it is"
		}
		all = append(all, CodeWorkspaceAstray.Because("has the Workspace %s, which says that %s lives on shard %s; "+
			"it lives on %s%s",
			h.Workspace, h.Name, h.Said, Residence(h.LivesOn), kcp).At(keys[h.Workspace]))
	}
	return all
}

func (r Resident) aboutTypes() (all []*finding.Finding) {
	for _, d := range r.Definitions {
		if !d.Present && !d.Virtual {
			all = append(all, r.because(CodeBoundDefinitionGone,
				"has bound %s, whose definition %s is not in system:bound-crds: no server serves it here",
				d.Resource, d.UID))
		}
	}
	for _, i := range r.Identities {
		why := "which no APIExport or APIBinding here knows"
		if i.Known {
			why = "which no APIBinding of it binds: left from one that is gone"
		}
		if !i.Known || !i.Bound {
			all = append(all, r.because(CodeIdentityUnbound, "has %s under identity %s, %s",
				strings.Join(i.Resources, ", "), i.Hash, why))
		}
	}
	return all
}

// distinctNames names places so that two files of one shard, and two storages of one file, get
// different names.
func distinctNames(places []Place) (all []string) {
	for _, p := range places {
		where := p.Path
		if slices.ContainsFunc(places, func(other Place) bool {
			return other.Path == p.Path &&
				other.Prefix != p.Prefix
		}) {
			where += " below " + p.Prefix + "/"
		}
		all = append(all, fmt.Sprintf("on shard %s (%s)", p.Called(), where))
	}
	return all
}
