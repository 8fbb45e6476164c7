package clusters

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
)

// Called is the name of the shard, or the path of its file.
func (p Place) Called() string {
	if p.Shard == "" {
		return p.Path
	}
	return p.Shard
}

// called names shards; the list is never nil.
func called(places []Place) []string {
	names := []string{}
	for _, p := range places {
		names = append(names, p.Called())
	}
	return names
}

// Residence lists the shards that a logical cluster lives on.
func Residence(shards []string) string {
	if len(shards) == 0 {
		return "none that was given"
	}
	return strings.Join(shards, ",")
}

// Called is the name of the logical cluster, and its path where it is known.
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
// sentences without the subject.
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
		all = append(all, r.because(CodeClusterTwice, "lives %s too", strings.Join(apart(slices.Concat([]Place{r.Place}, r.Elsewhere)), " and ")))
	}
	if r.ShardName != "" && r.Shard != "" && r.ShardName != r.Shard {
		all = append(all, r.because(CodeClusterMisnamed, "lives on shard %s and believes to live on %s, until kcp corrects that", r.Shard, r.ShardName))
	}
	if r.OwnerGone {
		all = append(all, r.because(CodeWorkspaceGone, "belongs to the Workspace %s in %s, which is not there", r.Owner.Name, r.Owner.Cluster))
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
		all = append(all, CodeWorkspaceAstray.Because("has the Workspace %s, which says that %s lives on shard %s; it lives on %s%s",
			h.Workspace, h.Name, h.Said, Residence(h.LivesOn), kcp).At(keys[h.Workspace]))
	}
	return all
}

func (r Resident) aboutTypes() (all []*finding.Finding) {
	for _, d := range r.Definitions {
		if !d.Present && !d.Virtual {
			all = append(all, r.because(CodeBoundDefinitionGone,
				"has bound %s, whose definition %s is not in system:bound-crds: no server serves it here", d.Resource, d.UID))
		}
	}
	for _, i := range r.Identities {
		why := "which no APIExport or APIBinding here knows"
		if i.Known {
			why = "which no APIBinding of it binds: left from one that is gone"
		}
		if !i.Known || !i.Bound {
			all = append(all, r.because(CodeIdentityUnbound, "has %s under identity %s, %s", strings.Join(i.Resources, ", "), i.Hash, why))
		}
	}
	return all
}

// apart names places so that two files of one shard, and two storages of one file, differ.
func apart(places []Place) (all []string) {
	for _, p := range places {
		where := p.Path
		if slices.ContainsFunc(places, func(other Place) bool { return other.Path == p.Path && other.Prefix != p.Prefix }) {
			where += " below " + p.Prefix + "/"
		}
		all = append(all, fmt.Sprintf("on shard %s (%s)", p.Called(), where))
	}
	return all
}
