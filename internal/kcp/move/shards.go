package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// ErrPartial is returned for a file that lacks records of every started shard: an archive, an etcd
// for single types, or a shard on which kcp has never run.
var ErrPartial = errors.New("no whole shard of kcp")

// destination is the shard that receives the records.
type destination struct {
	file  *kcp.File
	shard *kcp.Shard
	name  string    // of the shard; "" if unknown
	known *kcp.File // the storages of its file, and the caches of a cache server
}

func readDestination(
	ctx context.Context, r *inspect.Reader, prefixes []string, asShard string, cache *kcp.File,
) (*destination, error) {
	file, err := kcp.Read(ctx, r)
	if err != nil {
		return nil, err
	}
	shard, err := file.Shard(prefixes)
	if err != nil {
		return nil, err
	}
	d := &destination{file, shard, cmp.Or(asShard, shard.Name), &kcp.File{Shards: file.Shards, Caches: file.Caches}}
	if cache != nil { // a shard in the cache's file is not part of this installation
		d.known.Caches = slices.Concat(file.Caches, cache.Caches)
	}
	return d, checkWhole(shard)
}

// checkWhole returns ErrPartial for a shard whose logical clusters or types are unknown.
func checkWhole(s *kcp.Shard) error {
	lacks := ""
	switch {
	case len(s.System) == 0:
		lacks = "no CustomResourceDefinitions in " + kcp.SystemCRDs
	case s.Partial:
		lacks = "no LogicalCluster of " + kcp.SystemShard
	default:
		return nil
	}
	return fmt.Errorf("%w: below %q there are %s; an archive, an etcd for some types alone, and a shard that kcp "+
		"never ran on are like that", ErrPartial, s.Prefix, lacks)
}

func (d *destination) called() string {
	if d.name == "" {
		return "this shard"
	}
	return fmt.Sprintf("shard %q", d.name)
}

// registered returns the Shard object of the destination; nil for none in the files.
func (d *destination) registered() *kcp.RegisteredShard {
	for _, r := range d.known.Registered() {
		if r.Name == d.name {
			return &r
		}
	}
	return nil
}

// presence returns a key of a logical cluster in the file, and a sentence about the key; "" for
// none.
func (d *destination) presence(name string) (key, what string) {
	for _, s := range d.file.Shards {
		where := ""
		if s != d.shard {
			where = fmt.Sprintf(" below the prefix %q, another storage of the same file,", s.Prefix)
		}
		if c := s.Cluster(name); c != nil {
			return string(kcp.LogicalClusterKey(s.Prefix, name)),
				fmt.Sprintf("%q lives there%s already with %s", name, where,
					phrase.Count(c.Amount.Keys, "key"))
		}
		if o := s.Orphan(name); o != nil {
			what = fmt.Sprintf("there are orphans of %q%s with %s", name, where, phrase.Count(o.Amount.Keys, "key"))
			if where == "" {
				what += "; purge them first: etcdshift kcp purge --orphans " + transform.ShellWord(name)
			}
			return o.Keys[0], what
		}
	}
	return "", ""
}

// origin is the source of records: an archive, or a shard with orphans.
type origin struct {
	reader *inspect.Reader
	layout keys.KCPShard
	shard  *kcp.Shard
	leases map[int64]int64 // TTL in seconds, by id
}

// openOrigin reads a snapshot with kcp.Read or kcp.ReadChecked. prefixes name its storage if the
// file has several, or if the storage is not detectable.
func openOrigin(
	ctx context.Context, s *snapshot.Snapshot, read func(context.Context, *inspect.Reader) (*kcp.File, error),
	decrypter inspect.Decrypter, prefixes ...string,
) (*origin, error) {
	o := &origin{reader: inspect.NewReader(s, decrypter, prefixes...)}
	file, err := read(ctx, o.reader)
	if err == nil {
		o.shard, err = file.Shard(prefixes)
	}
	if err == nil {
		o.leases, err = s.Leases(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path(), err)
	}
	o.layout = keys.KCPShard{Prefix: o.shard.Prefix}
	return o, nil
}

// reportOrigin adds the origin's file to the report, and warnings about the file.
func (c *carrier) reportOrigin(ctx context.Context) error {
	s := c.from.reader.Snapshot()
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	c.view.Report().Archive = &info
	for _, odd := range transform.OddFile(s) {
		odd.Reason = s.Path() + ": " + odd.Reason
		c.view.Raise("", odd)
	}
	return nil
}

// original is a record of the origin and its parsed key.
type original struct {
	*inspect.Entry
	key keys.Key
}

// stored returns the record without its decrypted value. Its bytes are in the mapped file.
func (r original) stored() *inspect.Entry {
	return &inspect.Entry{Key: r.Key, Stored: r.Stored, Lease: r.Lease}
}

// ttl returns the TTL of a lease in seconds; 0 for no lease or a missing lease.
func (o *origin) ttl(id int64) int64 {
	if id == 0 {
		return 0
	}
	return max(o.leases[id], 0)
}

// records yields the records of logical clusters below dir, in revision order, not decrypted.
func (o *origin) records(ctx context.Context, dir []byte) iter.Seq2[original, error] {
	return func(yield func(original, error) bool) {
		for e, err := range o.reader.Raw(ctx, dir) {
			if err != nil {
				yield(original{}, err)
				return
			}
			if key, err := e.ParseKey(); err == nil && key.Prefix == o.layout.Prefix && !yield(original{&e, key}, nil) {
				return
			}
		}
	}
}

func (o *origin) definitions(ctx context.Context) iter.Seq2[original, error] {
	return o.records(ctx, o.layout.Dirs(keys.DefinitionType())[0])
}

// defineIn adds the own definitions of logical clusters.
func (c *carrier) defineIn(ctx context.Context, o *origin, of func(cluster string) bool) error {
	return stream.Each(o.definitions(ctx), func(r original) error {
		if !of(r.key.Cluster) {
			return nil
		}
		if err := o.reader.Decrypt(ctx, r.Entry); err != nil {
			return err
		}
		if r.Undecryptable != nil {
			c.serving.Undecryptable[r.key.Cluster] = true
		} else {
			c.serving.Define(r.key, r.Value)
		}
		return nil
	})
}

func (c *carrier) definitionKey(uid string) []byte {
	return c.to.Format(keys.Key{Resource: keys.DefinitionType(), Cluster: kcp.BoundCRDs, Name: uid})
}

// wants maps the UIDs of definitions to the types in the bindings that name them.
type wants map[string][]apischema.GroupResource

// addDefinitions stages the wanted bound definitions that the shard lacks, and merges stored
// versions into the existing definitions. All logical clusters of a shard use bound definitions: an
// unfit one is never added.
func (c *carrier) addDefinitions(ctx context.Context, wanted wants) error {
	return stream.Each(c.from.definitions(ctx), func(r original) error {
		types, wanted := wanted[r.key.Name]
		if r.key.Cluster != kcp.BoundCRDs || !wanted {
			return nil
		}
		if err := c.from.reader.Decrypt(ctx, r.Entry); err != nil {
			return err
		}
		if here := c.serving.Bound[r.key.Name]; here != nil {
			return c.merge(ctx, r, here)
		}
		if reason := unfit(r, types); reason != "" {
			c.serving.Unfit[r.key.Name] = reason
			return nil
		}
		c.serving.Bound[r.key.Name] = c.from.shard.Definition(r.key.Name)
		return c.carry(ctx, r, nil)
	})
}

// unfit returns why a record is not the bound definition of types in kcp's form (kcp
// pkg/reconciler/apis/apibinding/apibinding_reconcile.go); "" if the record fits.
func unfit(r original, types []apischema.GroupResource) string {
	if r.Undecryptable != nil {
		return fmt.Sprintf("whether it fits cannot be told, it cannot be decrypted: %v", r.Undecryptable)
	}
	crd, err := schema.ParseCRD(r.Value)
	if err != nil {
		return "it cannot be read"
	}
	_, bound := crd.Object().Annotations[kcp.AnnotationBound]
	switch {
	case crd.Object().Name != r.key.Name:
		return "its name is not that of its key"
	case !bound:
		return "it has no annotation " + kcp.AnnotationBound
	}
	for _, of := range types {
		if of != crd.GroupResource() {
			return fmt.Sprintf("it defines %s", crd.GroupResource())
		}
	}
	return ""
}

// merge adds the stored versions of the origin to the definition of the shard.
func (c *carrier) merge(ctx context.Context, r original, here *kcp.Definition) error {
	key := c.definitionKey(r.key.Name)
	e, err := c.view.Get(ctx, key)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("the definition of %s here", cmp.Or(here.Resource.String(), here.Name))
	if e == nil || e.Undecryptable != nil || r.Undecryptable != nil {
		c.raise(string(key), codeDefinitionDiffers,
			"%s and that of the origin cannot be compared: one cannot be decrypted", what)
		return nil
	}
	mine, err := schema.ParseCRD(e.Value)
	if err != nil {
		c.raise(string(key), codeDefinitionDiffers, "%s cannot be read", what)
		return nil
	}
	theirs, err := schema.ParseCRD(r.Value)
	if err != nil || !reflect.DeepEqual(mine.Object().Spec, theirs.Object().Spec) {
		c.raise(string(key), codeDefinitionDiffers, "%s has another spec than that of the origin", what)
	}
	if err != nil {
		return nil
	}
	return c.mergeStored(ctx, key, e.Value, here, theirs.Object().Status.StoredVersions)
}

func (c *carrier) mergeStored(ctx context.Context, key, value []byte, here *kcp.Definition, theirs []string) error {
	stored, unlisted := mergeStored(here.Versions, here.StoredVersions, theirs)
	for _, version := range unlisted {
		c.note(string(key), codeUnlistedVersion,
			"storedVersions of the origin has %q, which the definition here does not list: it is left out", version)
	}
	if len(stored) == len(here.StoredVersions) {
		return nil
	}
	merged, err := schema.SetStoredVersions(value, stored)
	if err != nil {
		return fmt.Errorf("key %q: %w", key, err)
	}
	return c.change(ctx, key, merged)
}

// change stages another value of a record of the shard.
func (c *carrier) change(ctx context.Context, key, value []byte) error {
	c.changed[string(key)] = value
	return c.view.Put(ctx, key, value)
}

// needDefinitions reports wanted definitions of a logical cluster that are missing or unreadable.
func (c *carrier) needDefinitions(cluster *kcp.Cluster, wanted wants) {
	for b, bound := range cluster.Bound() {
		here := c.serving.Bound[bound.UID]
		switch {
		case bound.Virtual || wanted[bound.UID] == nil:
		case here != nil && here.Problem != "" && c.from.shard.Definition(bound.UID) == nil: // else compared
			c.raise(here.Key, codeDefinitionDiffers, "whether the definition of %s here fits cannot be told: %s",
				bound.Resource, here.Problem)
		case here == nil:
			where := "which is neither here nor in the origin"
			if reason := c.serving.Unfit[bound.UID]; reason != "" {
				where = "which is not here, and that of the origin does not come: " + reason
			}
			c.raise(string(c.definitionKey(bound.UID)), codeMissingDefinition,
				"APIBinding %q in %q needs the definition of %s (APIResourceSchema %q), %s", b.Name, cluster.Name,
				bound.Resource, bound.Schema, where)
		}
	}
}

// unreadableHint qualifies a missing definition if an unreadable definition may define the type.
func unreadableHint(s *Serving, cluster string) string {
	switch {
	case s.Undecryptable[cluster]:
		return ", as far as can be told: definitions of that logical cluster cannot be decrypted"
	case s.Undecryptable[kcp.SystemCRDs]:
		return ", as far as can be told: definitions of the shard cannot be read"
	}
	return ""
}

func (c *carrier) reportUnreadable() {
	for _, m := range c.serving.Unreadable {
		what := fmt.Sprintf("%s of %s in %q", phrase.Count(m.Records, "record"), m.Resource, m.Cluster)
		switch m.Code {
		case kcp.CodeUndecodable:
			c.note(m.Key, codeUndecodable, "%s cannot be read, and stored as it is", what)
			continue
		case codeUnlistedVersion:
			what += fmt.Sprintf(": stored at version %q, which their definition here does not list", m.Version)
		case codeUnserved:
			what += ": the kcp of this shard has no such type" + unreadableHint(c.serving, m.Cluster)
		default:
			what += ": nothing defines the type, neither in its own logical cluster nor for the whole shard" +
				unreadableHint(c.serving, m.Cluster)
		}
		c.raise(m.Key, importCodeOf(m.Code), "%s", what)
	}
}

// checkIdentities reports identities of types that the destination does not know: its kcp would
// have another identity for the same APIExport, and would not find the objects.
func (c *carrier) checkIdentities(types map[string][]string) {
	for _, identity := range slices.Sorted(maps.Keys(types)) {
		if identity == "" || c.dest.known.Knows(identity, nil) {
			continue
		}
		slices.Sort(types[identity])
		c.raise("", codeUnknownIdentity, "identity %s, of %s, is that of no APIExport and no APIBinding that the "+
			"shard or a cache knows", identity, strings.Join(slices.Compact(types[identity]), ", "))
	}
}
