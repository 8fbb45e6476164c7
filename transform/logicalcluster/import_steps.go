package logicalcluster

import (
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
)

// steps says what is left to do by hand, before what settleOwners has said.
func (i *Import) steps(r *transform.Report) {
	m := i.options.Manifest
	later := r.Steps
	r.Steps = nil
	origin := "the origin"
	if m.Origin.Shard != "" {
		origin = fmt.Sprintf("the origin, shard %q", m.Origin.Shard)
	}
	purge := "etcdshift cluster purge " + word(m.Name) + " ORIGIN ORIGIN-OUT"
	if len(m.Clusters) > 1 {
		purge += " --with-children"
	}
	r.AddStep("stop kcp of both shards before either is restored, and restore both: a logical cluster must not live on two")
	r.AddStep("take it out of %s: %s", origin, purge)
	names, each := word(m.Name), ""
	if len(m.Clusters) > 1 {
		names, each = "NAME", ", for each NAME of "+strings.Join(i.names(), ", ")
	}
	from := "SHARD"
	if m.Origin.Shard != "" {
		from = word(m.Origin.Shard)
	}
	r.AddStep("take its copies out of the cache server too, where that has an etcd of its own: etcdshift cluster purge %s CACHE CACHE-OUT --from-shard %s%s",
		names, from, each)
	r.AddStep("judge the whole move before any shard runs: etcdshift cluster verify %s ORIGIN-OUT OUT", word(i.options.Archive.Path()))
	for _, step := range later {
		r.AddStep("%s", step)
	}
	if more := i.ownerSteps - mostOwnerSteps; more > 0 {
		r.AddStep("and the like for the Workspaces of the other logical clusters that came in, %s", counted(more, "step"))
	}
}

// mostOwnerSteps is how many steps about Workspaces are said one by one.
const mostOwnerSteps = 20

// ownerStep says what is to be done about a Workspace.
func (i *Import) ownerStep(format string, args ...any) {
	if i.ownerSteps++; i.ownerSteps <= mostOwnerSteps {
		i.view.Report().AddStep(format, args...)
	}
}

// names are those of the logical clusters that come in.
func (i *Import) names() (names []string) {
	for _, c := range i.incoming {
		names = append(names, c.Name)
	}
	return names
}

// stepsOfOwner says what becomes of a Workspace that is left as it is; w is nil where it is in neither file.
func (i *Import) stepsOfOwner(c *clusters.Cluster, w *owner) {
	if c.Owner == nil {
		return
	}
	if w == nil || w.ShardName != i.dest.name || i.dest.name == "" {
		i.ownerStep("Workspace %q in logical cluster %q: when this shard runs, kcp has it say that %q lives on %s; see that it does: %s",
			c.Owner.Name, c.Owner.Cluster, c.Name, i.dest.called(), i.kubectl(c, "get", "-o yaml"))
	}
	i.stepOfRegion(c, w)
}

// stepOfRegion is for the label that kcp sets once and never changes.
func (i *Import) stepOfRegion(c *clusters.Cluster, w *owner) {
	here, region := i.dest.registered(), "REGION"
	if here != nil {
		region = here.Region
	}
	if region == "" || w != nil && w.region == region {
		return
	}
	i.ownerStep("kcp never corrects the label region of Workspace %q in %q: %s",
		c.Owner.Name, c.Owner.Cluster, i.kubectl(c, "label --overwrite", word("region="+region)))
}

// kubectl is a command about the Workspace that a logical cluster belongs to.
func (i *Import) kubectl(c *clusters.Cluster, verb, rest string) string {
	server := "https://FRONT-PROXY"
	if here := i.dest.registered(); here != nil && here.ExternalURL != "" {
		server = strings.TrimSuffix(here.ExternalURL, "/")
	}
	return fmt.Sprintf("kubectl --server %s %s workspaces.tenancy.kcp.io %s %s",
		word(server+"/clusters/"+c.Owner.Cluster), verb, word(c.Owner.Name), rest)
}

// word is a name or a path as one word of a command line.
func word(s string) string { return transform.ShellWord(s) }

// counted is a number and what it counts.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
