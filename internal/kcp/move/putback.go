package move

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
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// PutBack copies orphans of one shard, as a live migration leaves them, to the shard where their
// logical clusters live.
type PutBack struct {
	From      *snapshot.Snapshot // the shard with the orphans; stays open while the PutBack is in use
	Decrypter inspect.Decrypter  // decrypts From; nil without a configuration
	Prefixes  []string           // of the storages of both shards, if a file has several
	Cache     *kcp.File          // of the cache server, if in a separate file; nil for none
}

// Plan stages the bound definitions that the shard lacks, then the orphans whose keys the shard
// lacks, in the order of their revisions.
func (p *PutBack) Plan(ctx context.Context, v *transform.View) error {
	return p.From.Guard(func() error {
		run, err := p.read(ctx, v)
		if err != nil {
			return err
		}
		return run.plan(ctx)
	})
}

type puttingBack struct {
	*carrier
	homes   map[string]*kcp.Cluster // living on the shard, with orphans on the other shard, by name
	paths   map[string]string       // names of homes, by the path of orphans
	odd     map[string]string       // contradictions between orphans and their keys, by key on the other shard
	forever []string                // Events without a lease, by key
}

func (o *PutBack) read(ctx context.Context, v *transform.View) (*puttingBack, error) {
	dest, err := readDestination(ctx, v.Reader(), o.Prefixes, "", o.Cache)
	if err != nil {
		return nil, err
	}
	from, err := openOrigin(ctx, o.From, kcp.ReadChecked, o.Decrypter, o.Prefixes...)
	if err != nil {
		return nil, err
	}
	if err := checkWhole(from.shard); err != nil { // otherwise living clusters would look like orphans
		return nil, fmt.Errorf("%s: %w", o.From.Path(), err)
	}
	c, err := newCarrier(ctx, v, from, dest)
	if err != nil {
		return nil, err
	}
	p := &puttingBack{
		carrier: c, homes: map[string]*kcp.Cluster{}, paths: map[string]string{}, odd: map[string]string{},
	}
	for _, orphan := range from.shard.Orphans {
		c := dest.shard.Home(orphan.Name)
		if c == nil {
			v.Raise(orphan.Keys[0], codeLivesNowhere.Because("orphans of %q stay there, %s: it does not live on %s",
				orphan.Name, phrase.Count(orphan.Amount.Keys, "key"), dest.called()))
			continue
		}
		if c.Name != orphan.Name {
			p.paths[orphan.Name] = c.Name
		}
		p.checkHome(c, orphan)
	}
	if err := p.defineIn(ctx, &origin{reader: v.Reader(), layout: p.to}, p.hasHome); err != nil {
		return nil, err
	}
	return p, p.defineIn(ctx, from, p.hasHome)
}

func (p *puttingBack) plan(ctx context.Context) error {
	lost, err := p.lost(ctx)
	if err != nil {
		return err
	}
	if err := p.checkNamespaces(ctx, lost); err != nil {
		return err
	}
	types := map[string][]string{} // by identity
	for _, r := range lost {
		types[r.key.Identity] = append(types[r.key.Identity], r.key.Resource.String())
	}
	p.checkIdentities(types)
	if err := p.addDefinitionsFor(ctx, lost); err != nil {
		return err
	}
	for _, r := range lost {
		if err := p.putBack(ctx, r); err != nil {
			return err
		}
	}
	p.reportUnreadable()
	p.report(p.view.Report())
	return p.reportOrigin(ctx)
}

func (p *puttingBack) putBack(ctx context.Context, r original) error {
	to := string(p.to.Format(r.key))
	if reason := p.odd[string(r.Key)]; reason != "" {
		p.raise(to, kcp.CodeKeyMismatch, "%s", reason)
	}
	if r.key.Resource == (schema.GroupResource{Resource: "events"}) && !r.key.Custom && r.key.Identity == "" &&
		p.from.ttl(r.Lease) == 0 {
		p.forever = append(p.forever, transform.ShellWord(to))
	}
	r.Entry = r.stored() // drop the decrypted value
	return p.carryObject(ctx, r, p.renamed(r))
}

// renamed sets the name of its logical cluster in an object stored under a path; nil for other
// objects.
func (p *puttingBack) renamed(r original) edit {
	was, err := p.from.layout.Parse(r.Key)
	if err != nil || p.paths[was.Cluster] == "" {
		return nil
	}
	return func(value []byte) ([]byte, error) {
		meta, err := encoding.ReadMeta(value)
		if err != nil || meta.Annotations[kcp.AnnotationCluster] == "" {
			return value, err
		}
		return encoding.Set(value, r.key.Cluster, "metadata", "annotations", kcp.AnnotationCluster)
	}
}

// checkHome reports reasons against putting orphans back into a logical cluster.
func (p *puttingBack) checkHome(c *kcp.Cluster, orphan *kcp.Orphan) {
	p.homes[c.Name] = c
	p.serving.Bind(c)
	p.checkTerminating(p.keyOf(c.Name), c)
	for _, problem := range c.Problems {
		if c.Hidden[problem.Key] {
			p.refuse(problem.Key, importCodeOf(problem.Code), "it tells what the logical cluster needs: %s",
				problem.Reason)
		}
	}
	for _, problem := range orphan.Problems {
		mended := p.paths[orphan.Name] != "" && problem.Reason == "kcp.io/cluster of the value differs from the key"
		if problem.Code == kcp.CodeKeyMismatch && !mended {
			p.odd[problem.Key] = problem.Reason
		}
	}
}

func (p *puttingBack) hasHome(cluster string) bool { return p.homes[cluster] != nil }

// lost returns the orphans whose keys the shard lacks. Existing keys stay.
func (p *puttingBack) lost(ctx context.Context) (lost []original, err error) {
	err = stream.Each(p.from.records(ctx, []byte(p.from.layout.Prefix+"/")), func(r original) error {
		if name := p.paths[r.key.Cluster]; name != "" {
			r.key.Cluster = name
		} else if p.from.shard.Cluster(r.key.Cluster) != nil {
			return nil // no orphan: the logical cluster of the path lives there
		}
		if !p.hasHome(r.key.Cluster) {
			return nil
		}
		here, err := p.view.Get(ctx, p.to.Format(r.key))
		if err != nil {
			return err
		}
		if here == nil {
			lost = append(lost, r)
			return nil
		}
		return p.compareLiving(ctx, r, here)
	})
	return lost, err
}

// compareLiving reports a key with different values on the two shards.
func (p *puttingBack) compareLiving(ctx context.Context, r original, here *inspect.Entry) error {
	if err := p.from.reader.Decrypt(ctx, r.Entry); err != nil {
		return err
	}
	same := false
	if r.Undecryptable == nil && here.Undecryptable == nil {
		value, err := p.renamed(r).of(r.Entry)
		same = err == nil && bytes.Equal(value, here.Value)
	}
	switch {
	case same || bytes.Equal(r.Key, here.Key) && bytes.Equal(r.Stored, here.Stored):
	case r.Undecryptable != nil || here.Undecryptable != nil:
		p.raise(string(here.Key), codeKeyExists,
			"the key is there already; whether with the same value cannot be told: one cannot be decrypted")
	case writtenByKCP(r.key, r.Value, here.Value):
		p.note(string(here.Key), codeKeyExists,
			"the key is there already, with another value, which stays: kcp writes it itself")
	default:
		p.raise(string(here.Key), codeKeyExists, "the key is there already, with another value")
	}
	return nil
}

// writtenByKCP reports whether two values differ only in the CA of a shard. At each start, kcp
// writes the CA into ConfigMaps and into Secrets with a service account token.
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

// withoutCA returns a Secret with a service account token, without ca.crt and the metadata that its
// update changes; nil for any other value.
func withoutCA(value []byte) map[string]any {
	secret, err := native.Decode(value)
	if err != nil || secret["type"] != string(corev1.SecretTypeServiceAccountToken) {
		return nil
	}
	for _, field := range [][]string{{"data", "ca.crt"}, {"metadata", "managedFields"},
		{"metadata", "annotations", "kcp.io/cluster"}} {
		unstructured.RemoveNestedField(secret, field...)
	}
	return secret
}

// checkNamespaces reports objects in namespaces that do not exist.
func (p *puttingBack) checkNamespaces(ctx context.Context, lost []original) error {
	come := map[string]bool{}
	for _, r := range lost {
		come[string(p.to.Format(r.key))] = true
	}
	for _, r := range lost {
		if r.key.Namespace == "" {
			continue
		}
		namespace := p.to.Format(keys.Key{Resource: schema.GroupResource{Resource: "namespaces"},
			Cluster: r.key.Cluster, Name: r.key.Namespace})
		there, err := p.view.Reader().Has(ctx, namespace)
		if err != nil {
			return err
		}
		if !there && !come[string(namespace)] {
			p.raise(string(p.to.Format(r.key)), codeNamespaceMissing, "namespace %q is not in %q", r.key.Namespace,
				r.key.Cluster)
		}
	}
	return nil
}

func (p *puttingBack) addDefinitionsFor(ctx context.Context, lost []original) error {
	wanted := wants{}
	for _, r := range lost {
		if uid := p.serving.UID(r.key); uid != "" {
			wanted[uid] = append(wanted[uid], r.key.Resource)
		}
	}
	if err := p.addDefinitions(ctx, wanted); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.homes)) {
		p.needDefinitions(p.homes[name], wanted)
	}
	return nil
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
			p.receipts.Clusters = append(p.receipts.Clusters, Receipt{Name: name, Path: p.homes[name].Path, Sum: sum})
		}
	}
	stepToStop(r, "kcp of "+p.dest.called(), LostWrites)
	r.AddStep("take the orphans out of where they were found, too: etcdshift kcp purge --orphans %s OUT2",
		transform.ShellWord(p.from.reader.Snapshot().Path()))
	stepToStart(r)
	if n := len(p.forever); n > 0 {
		r.AddStep("delete %s once nobody needs them: the live migration left them no lease, and they would never "+
			"expire: %s", phrase.Count(n, "Event"), finding.List(p.forever))
	}
}
