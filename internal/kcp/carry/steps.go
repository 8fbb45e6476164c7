package carry

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/transform"
)

// steps adds the remaining steps by hand, before those of planOwners.
func (i *importing) steps(r *transform.Report) {
	later := r.Steps
	r.Steps = nil
	if from := i.options.Manifest.Origin.Shard; from != "" && from == i.dest.name {
		survey.StepToStop(r, fmt.Sprintf("kcp of shard %q, which is where the archive was made", from), survey.LostWrites)
	} else {
		i.stepsOfOrigin(r)
	}
	survey.StepToStart(r)
	for _, step := range later {
		r.AddStep("%s", step)
	}
	if more := i.ownerSteps - mostOwnerSteps; more > 0 {
		r.AddStep("and the like for the Workspaces of the other logical clusters that came in, %s", survey.Counted(more, "step"))
	}
}

// stepsOfOrigin adds the other half of a move.
func (i *importing) stepsOfOrigin(r *transform.Report) {
	m, copied := i.options.Manifest, i.options.Manifest.Names()
	purge, origin := "etcdshift kcp purge "+transform.ShellWord(m.Name)+" ORIGIN ORIGIN-OUT", "the origin"
	if len(m.Clusters) > 1 {
		purge += " --with-children"
	}
	if m.Origin.Shard != "" {
		origin = fmt.Sprintf("the origin, shard %q", m.Origin.Shard)
	}
	survey.StepToStop(r, "kcp of both shards", survey.LostWrites+"; restore both: a logical cluster must not live on two")
	r.AddStep("take it out of %s: %s --to-shard %s", origin, purge, transform.ShellWord(cmp.Or(i.dest.name, "NEW-SHARD")))
	if i.cachesHere(m.Origin.Shard) {
		r.AddStep("the cache in this shard's own file has copies from %s: %s; restore that output then", origin,
			survey.CopiesMove(copied, "OUT OUT-2", m.Origin.Shard, i.dest.name))
		survey.StepToVerify(r, i.options.Archive.Path(), "OUT-2", false)
		return
	}
	survey.StepToMoveCopies(r, copied, m.Origin.Shard, i.dest.name)
	survey.StepToVerify(r, i.options.Archive.Path(), "OUT", true)
}

// cachesHere tells whether a cache in this file has the origin's copies of what is imported.
func (i *importing) cachesHere(origin string) bool {
	for _, copied := range i.dest.file.Copies() {
		if copied.Shard == origin && i.comes(copied.Cluster) {
			return true
		}
	}
	return false
}

// mostOwnerSteps is the maximum of steps about single Workspaces.
const mostOwnerSteps = 20

func (i *importing) ownerStep(format string, args ...any) {
	if i.ownerSteps++; i.ownerSteps <= mostOwnerSteps {
		i.view.Report().AddStep(format, args...)
	}
}

// stepOfRegion is for the label that kcp sets once and never changes.
func (i *importing) stepOfRegion(c *clusters.Cluster, w *survey.Link) {
	here, region := i.dest.registered(), "REGION"
	if here != nil {
		region = here.Region
	}
	if region == "" || w != nil && w.Region == region {
		return
	}
	i.ownerStep("kcp never corrects the label region of Workspace %q in %q: %s",
		c.Owner.Name, c.Owner.Cluster, i.kubectl(c, "label --overwrite", transform.ShellWord("region="+region)))
}

// kubectl is a command about the Workspace of a logical cluster.
func (i *importing) kubectl(c *clusters.Cluster, verb, rest string) string {
	server := "https://FRONT-PROXY"
	if here := i.dest.registered(); here != nil && here.ExternalURL != "" {
		server = strings.TrimSuffix(here.ExternalURL, "/")
	}
	return fmt.Sprintf("kubectl --server %s %s workspaces.tenancy.kcp.io %s %s",
		transform.ShellWord(server+"/clusters/"+c.Owner.Cluster), verb, transform.ShellWord(c.Owner.Name), rest)
}
