package carry

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// PutBack brings orphans of one shard, as a live migration leaves them, to the shard where their
// logical clusters live.
type PutBack struct {
	From      *snapshot.Snapshot // the shard with the orphans; stays open while the PutBack is in use
	Decrypter inspect.Decrypter  // decrypts From; nil without a configuration
	Prefixes  []string           // of the storages of both shards, where a file has several
	Cache     *clusters.File     // of the cache server, where that has a file of its own; nil for none
}

// Plan stages the bound definitions that the shard lacks, then the orphans whose keys it lacks, in
// the order of their revisions.
func (p *PutBack) Plan(ctx context.Context, v *transform.View) error {
	return p.From.Guard(func() error {
		run, err := p.read(ctx, v)
		if err == nil {
			run.plan()
			err = run.Err
		}
		return err
	})
}

type puttingBack struct {
	*carrier
	homes   map[string]*clusters.Cluster // that live on the shard and have orphans on the other, by name
	paths   map[string]string            // names of homes, by the path under which orphans lie
	odd     map[string]string            // what orphans say otherwise than their keys, by key on the other shard
	forever []string                     // Events that come without a lease, by key
}

func (o *PutBack) read(ctx context.Context, v *transform.View) (*puttingBack, error) {
	dest, err := readDestination(ctx, v.Reader(), o.Prefixes, "", o.Cache)
	if err != nil {
		return nil, err
	}
	from, err := openOrigin(ctx, o.From, clusters.ReadChecked, o.Decrypter, o.Prefixes...)
	if err != nil {
		return nil, err
	}
	if err := checkWhole(from.shard); err != nil { // what lives there would look like orphans
		return nil, fmt.Errorf("%s: %w", o.From.Path(), err)
	}
	p := &puttingBack{
		carrier: newCarrier(ctx, v, from, dest),
		homes:   map[string]*clusters.Cluster{}, paths: map[string]string{}, odd: map[string]string{},
	}
	for _, orphan := range from.shard.Orphans {
		c := dest.shard.Home(orphan.Name)
		if c == nil {
			v.Raise(orphan.Keys[0], codeLivesNowhere.Because("orphans of %q stay there, %s: it does not live on %s",
				orphan.Name, survey.Counted(orphan.Amount.Keys, "key"), dest.called()))
			continue
		}
		if c.Name != orphan.Name {
			p.paths[orphan.Name] = c.Name
		}
		p.checkHome(c, orphan)
	}
	p.defineIn(&origin{reader: v.Reader(), layout: p.to}, p.hasHome)
	p.defineIn(from, p.hasHome)
	return p, p.Err
}

func (p *puttingBack) plan() {
	lost := p.lost()
	p.checkNamespaces(lost)
	types := map[string][]string{} // by identity
	for _, r := range lost {
		types[r.key.Identity] = append(types[r.key.Identity], r.key.Resource.String())
	}
	p.checkIdentities(types)
	p.bringFor(lost)
	for _, r := range lost {
		p.putBack(r)
	}
	p.reportUnreadable()
	p.reportOrigin()
	p.report(p.view.Report())
}

func (p *puttingBack) putBack(r original) {
	to := string(p.to.Format(r.key))
	if reason := p.odd[string(r.Key)]; reason != "" {
		p.raise(to, clusters.CodeKeyMismatch, "%s", reason)
	}
	if r.key.Resource == (schema.GroupResource{Resource: "events"}) && !r.key.Custom && r.key.Identity == "" && p.from.ttl(r.Lease) == 0 {
		p.forever = append(p.forever, transform.ShellWord(to))
	}
	r.Entry = r.stored() // the decrypted value is not kept
	p.carryObject(r, p.renamed(r))
}

// renamed has an object that lay under a path name its logical cluster; nil for others.
func (p *puttingBack) renamed(r original) edit {
	was, err := p.from.layout.Parse(r.Key)
	if err != nil || p.paths[was.Cluster] == "" {
		return nil
	}
	return func(value []byte) ([]byte, error) {
		meta, err := encoding.ReadMeta(value)
		if err != nil || meta.Annotations[annotationCluster] == "" {
			return value, err
		}
		return encoding.Set(value, r.key.Cluster, "metadata", "annotations", annotationCluster)
	}
}

// annotationCluster is the logical cluster of an object, as kcp writes it in an update.
const annotationCluster = "kcp.io/cluster"

// checkHome reports reasons against putting orphans back into a logical cluster.
func (p *puttingBack) checkHome(c *clusters.Cluster, orphan *clusters.Orphan) {
	p.homes[c.Name] = c
	p.serving.Bind(c)
	if c.Terminating != "" {
		p.raise(p.keyOf(c.Name), survey.CodeTerminating, "%q is being deleted since %s", c.Name, c.Terminating)
	}
	for _, problem := range c.Problems {
		if c.Hidden[problem.Key] {
			p.refuse(problem.Key, codeOf(problem.Code), "it tells what the logical cluster needs: %s", problem.Reason)
		}
	}
	for _, problem := range orphan.Problems {
		mended := p.paths[orphan.Name] != "" && problem.Reason == "kcp.io/cluster of the value differs from the key"
		if problem.Code == clusters.CodeKeyMismatch && !mended {
			p.odd[problem.Key] = problem.Reason
		}
	}
}

func (p *puttingBack) hasHome(cluster string) bool { return p.homes[cluster] != nil }

// lost returns the orphans whose keys the shard lacks. A key that it has stays.
func (p *puttingBack) lost() (lost []original) {
	for r := range survey.Each(&p.Reading, p.from.records(p.Ctx, []byte(p.from.layout.Prefix+"/"))) {
		if name := p.paths[r.key.Cluster]; name != "" {
			r.key.Cluster = name
		} else if p.from.shard.Cluster(r.key.Cluster) != nil {
			continue // no orphan: the logical cluster of a path lives there
		}
		if !p.hasHome(r.key.Cluster) {
			continue
		}
		here, err := p.view.Get(p.Ctx, p.to.Format(r.key))
		switch {
		case p.Failed(err):
		case here == nil:
			lost = append(lost, r)
		default:
			p.compareLiving(r, here)
		}
	}
	return lost
}

// compareLiving reports a key with different values on the two shards.
func (p *puttingBack) compareLiving(r original, here *inspect.Entry) {
	p.Failed(p.from.reader.Decrypt(p.Ctx, r.Entry))
	same := false
	if r.Undecryptable == nil && here.Undecryptable == nil {
		value, err := p.renamed(r).of(r.Entry)
		same = err == nil && bytes.Equal(value, here.Value)
	}
	switch {
	case same || bytes.Equal(r.Key, here.Key) && bytes.Equal(r.Stored, here.Stored):
	case r.Undecryptable != nil || here.Undecryptable != nil:
		p.raise(string(here.Key), codeKeyExists, "the key is there already; whether with the same value cannot be told: one cannot be decrypted")
	case writtenByKCP(r.key, r.Value, here.Value):
		p.note(string(here.Key), codeKeyExists, "the key is there already, with another value, which stays: kcp writes it itself")
	default:
		p.raise(string(here.Key), codeKeyExists, "the key is there already, with another value")
	}
}

// writtenByKCP tells whether two values differ only in the CA of a shard, which kcp writes at each
// start into ConfigMaps and Secrets with a service account token.
func writtenByKCP(key keys.Key, was, is []byte) bool {
	switch key.Resource {
	case schema.GroupResource{Resource: "configmaps"}:
		return key.Name == "kube-root-ca.crt"
	case schema.GroupResource{Resource: "secrets"}:
		secret := withoutCA(was)
		return secret != nil && reflect.DeepEqual(secret, withoutCA(is))
	}
	return false
}

// withoutCA returns a Secret with a service account token, without ca.crt and the metadata that an
// update of it changes; nil for any other value.
func withoutCA(value []byte) map[string]any {
	secret, err := native.Decode(value)
	if err != nil || secret["type"] != string(corev1.SecretTypeServiceAccountToken) {
		return nil
	}
	for _, field := range [][]string{{"data", "ca.crt"}, {"metadata", "managedFields"}, {"metadata", "annotations", "kcp.io/cluster"}} {
		unstructured.RemoveNestedField(secret, field...)
	}
	return secret
}

// checkNamespaces reports objects in namespaces that do not exist.
func (p *puttingBack) checkNamespaces(lost []original) {
	come := map[string]bool{}
	for _, r := range lost {
		come[string(p.to.Format(r.key))] = true
	}
	for _, r := range lost {
		if r.key.Namespace == "" {
			continue
		}
		namespace := p.to.Format(keys.Key{Resource: schema.GroupResource{Resource: "namespaces"}, Cluster: r.key.Cluster, Name: r.key.Namespace})
		there, err := p.view.Reader().Has(p.Ctx, namespace)
		if !p.Failed(err) && !there && !come[string(namespace)] {
			p.raise(string(p.to.Format(r.key)), codeNamespaceMissing, "namespace %q is not in %q", r.key.Namespace, r.key.Cluster)
		}
	}
}

func (p *puttingBack) bringFor(lost []original) {
	wanted := wants{}
	for _, r := range lost {
		if uid := p.serving.UID(r.key); uid != "" {
			wanted[uid] = append(wanted[uid], r.key.Resource)
		}
	}
	p.bring(wanted)
	for _, name := range slices.Sorted(maps.Keys(p.homes)) {
		p.needDefinitions(p.homes[name], wanted)
	}
}

func (p *puttingBack) report(r *transform.Report) {
	for _, name := range slices.Sorted(maps.Keys(p.homes)) {
		d := archive.NewDigest()
		for _, s := range p.staged {
			if s.cluster == name {
				d.Add(s.to[len(p.to.Prefix):], s.from.Stored, p.from.ttl(s.from.Lease))
			}
		}
		if sum := d.Sum(); sum.Keys > 0 {
			p.receipts.Clusters = append(p.receipts.Clusters, survey.Receipt{Name: name, Path: p.homes[name].Path, Sum: sum})
		}
	}
	survey.StepToStop(r, "kcp of "+p.dest.called(), survey.LostWrites)
	r.AddStep("take the orphans out of where they were found, too: etcdshift kcp purge --orphans %s OUT2",
		transform.ShellWord(p.from.reader.Snapshot().Path()))
	survey.StepToStart(r)
	if n := len(p.forever); n > 0 {
		r.AddStep("delete %s once nobody needs them: the live migration left them no lease, and they would never expire: %s",
			survey.Counted(n, "Event"), finding.List(p.forever))
	}
}
