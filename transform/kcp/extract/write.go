package extract

import (
	"context"
	"iter"
	"strconv"

	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

func (e *extraction) build(ctx context.Context, m *archive.Manifest) error {
	notes, err := m.Notes()
	if err != nil {
		return err
	}
	content := snapshot.Content{Records: e.records(ctx), Revision: m.Origin.Revision, Notes: notes}
	for _, l := range m.Leases {
		id, err := strconv.ParseInt(l.ID, 16, 64)
		if err != nil {
			return err
		}
		if l.TTL > 0 {
			content.Leases = append(content.Leases, snapshot.Lease{ID: id, TTL: l.TTL})
		}
	}
	e.view.Build(content)
	return nil
}

func (e *extraction) records(ctx context.Context) iter.Seq2[*snapshot.Record, error] {
	return func(yield func(*snapshot.Record, error) bool) {
		for rec, err := range e.src.Live(ctx, nil) {
			if err == nil && !e.takes(rec.Key) {
				continue
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

func (e *extraction) steps(m *archive.Manifest) {
	r, also := e.report, ""
	name, in, out := transform.ShellWord(e.Name), transform.ShellWord(r.Input.Path), transform.ShellWord(e.Archive)
	if len(m.Clusters) > 1 {
		also = " --with-children"
	}
	if e.AsShard != "" {
		also += " --as-shard " + transform.ShellWord(e.AsShard)
	}
	for _, p := range e.Prefixes {
		also += " --prefix " + transform.ShellWord(p)
	}
	r.AddStep("keep the archive as the snapshot is kept: it has the Secrets of the cluster, as they are stored")
	for _, x := range m.Encryption {
		r.AddStep("%s encrypted by %s: the API servers of the destination need that key, or the import an --encryption-config",
			survey.Counted(x.Keys, "value"), x.Name)
	}
	if n := len(m.Missing); n > 0 {
		r.AddStep("%s not there; the destination has to have what is missing", survey.Counted(n, "bound definition"))
	}
	r.AddStep("to move it, stop all front-proxies first, then kcp of both shards, and extract again from a snapshot of after that")
	r.AddStep("take it in elsewhere: etcdshift cluster import %s DESTINATION DESTINATION-OUT", out)
	r.AddStep("take it out here: etcdshift cluster purge %s %s ORIGIN-OUT%s --to-shard NEW-SHARD", name, in, also)
	survey.StepToMoveCopies(r, m.Names(), m.Origin.Shard, "")
	survey.StepToVerify(r, e.Archive, "DESTINATION-OUT", true)
	survey.StepToStart(r)
}
