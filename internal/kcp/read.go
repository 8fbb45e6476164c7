package kcp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// Read reads the storages of kcp in a snapshot, which must stay open while the File is in use. Read
// decrypts only values that describe logical clusters; an unreadable value is a problem, not an
// error. Memory grows with the logical clusters, and with the keys of orphans and copies.
func Read(ctx context.Context, r *inspect.Reader) (*File, error) { return read(ctx, r, false) }

// ReadChecked is Read with decryption of all values, and compares the name, namespace and
// kcp.io/cluster of each value with its key.
func ReadChecked(ctx context.Context, r *inspect.Reader) (*File, error) { return read(ctx, r, true) }

// Checking is ReadChecked for a caller with its own pass: add takes each entry of r.Live, and file
// returns the result.
func Checking(ctx context.Context, r *inspect.Reader) (add func(*inspect.Entry) error, file func() *File, err error) {
	p, err := newPass(ctx, r, true)
	if err != nil {
		return nil, nil, err
	}
	p.decrypted = true
	return func(e *inspect.Entry) error {
		x, err := p.add(*e)
		if err == nil {
			x.decode()
			x.end()
		}
		return err
	}, p.finish, nil
}

func read(ctx context.Context, r *inspect.Reader, check bool) (*File, error) {
	p, err := newPass(ctx, r, check)
	if err != nil {
		return nil, err
	}
	counted := stream.Of(func(yield func(examination) error) error {
		return stream.Each(r.Raw(ctx, nil), func(e inspect.Entry) error {
			x, err := p.add(e)
			if err != nil || !x.asked {
				return err
			}
			return yield(x)
		})
	})
	item := func(x examination) (examination, int) { return x, len(x.entry.Value) }
	err = stream.Each(stream.Ahead(r.Snapshot().Guard, counted, item, (*examination).decode),
		func(x *examination) error {
			x.end()
			return nil
		})
	if err != nil {
		return nil, err
	}
	return p.finish(), nil
}

type pass struct {
	ctx       context.Context
	reader    *inspect.Reader
	check     bool // check all values
	decrypted bool // the entries are already decrypted
	file      *File
	shards    map[string]*shardPass // by prefix, like the next two
	caches    map[string]*cachePass
	others    map[string]*Amount
	names     names
	glances   sync.Pool // of *encoding.Glance
}

func newPass(ctx context.Context, r *inspect.Reader, check bool) (*pass, error) {
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	p := &pass{
		ctx: ctx, reader: r, check: check, file: &File{Layouts: layouts, Storages: layouts.Storages()},
		shards: map[string]*shardPass{}, caches: map[string]*cachePass{}, others: map[string]*Amount{}, names: names{},
	}
	for _, s := range p.file.Storages {
		switch s.Flavour {
		case keys.FlavourKCPShard:
			p.shards[s.Prefix] = &shardPass{p, &Shard{
				Prefix: s.Prefix, Partial: true, clusters: map[string]*Cluster{}, orphans: map[string]*Orphan{},
				definitions: map[string]*Definition{}, children: map[string][]*Cluster{}, paths: map[string]*Cluster{},
			}}
		case keys.FlavourKCPCache:
			p.caches[s.Prefix] = &cachePass{p, &Cache{Prefix: s.Prefix}, map[keys.Key]*Copy{}}
		default:
			p.others[s.Prefix] = &Amount{}
		}
	}
	return p, nil
}

// add counts one entry and returns the examination of its value.
func (p *pass) add(e inspect.Entry) (examination, error) {
	s, ok := p.file.Layouts.Of(e.Key)
	if ok && !s.Flavour.KCP() {
		p.others[s.Prefix].add(&e)
		return examination{}, nil
	}
	switch key, err := e.ParseKey(); {
	case err != nil:
		p.file.Unknown = append(p.file.Unknown, unknown(&e, err))
		return examination{}, nil
	case s.Flavour == keys.FlavourKCPShard:
		return p.shards[s.Prefix].add(key, &e)
	default:
		return p.caches[s.Prefix].add(key, &e)
	}
}

func unknown(e *inspect.Entry, err error) Unknown {
	u := Unknown{Key: string(e.Key), Bytes: int64(len(e.Key)) + int64(len(e.Stored)), Reason: err.Error()}
	if !utf8.Valid(e.Key) {
		u.KeyBytes = append([]byte{}, e.Key...)
	}
	said := (*keys.KeyError)(nil)
	switch {
	case len(e.Key) == 0:
		u.Reason, u.Expected = "left behind by etcdutl snapshot restore --bump-revision", true
	case u.Key == compactRevKey:
		u.Reason, u.Expected = "the API server's own, for its compactions", true
	case errors.As(err, &said):
		u.Reason = said.Reason
	}
	return u
}

// compactRevKey is the key by which the API servers of an etcd agree on compactions
// (k8s.io/apiserver pkg/storage/etcd3/compact.go).
const compactRevKey = "compact_rev_key"

func (a *Amount) add(e *inspect.Entry) {
	a.Keys++
	a.Bytes += int64(len(e.Key)) + int64(len(e.Stored))
}

func (p *pass) finish() *File {
	p.file.Storages = slices.DeleteFunc(p.file.Storages, func(s keys.Storage) bool {
		return s.Flavour == keys.FlavourUnknown && p.others[s.Prefix].Keys == 0
	})
	for _, s := range p.file.Storages {
		switch s.Flavour {
		case keys.FlavourKCPShard:
			p.file.Shards = append(p.file.Shards, p.shards[s.Prefix].finish())
		case keys.FlavourKCPCache:
			p.file.Caches = append(p.file.Caches, p.caches[s.Prefix].finish())
		default:
			p.file.Others = append(p.file.Others, Other{s, *p.others[s.Prefix]})
		}
	}
	return p.file
}

// reading is how to read a value of one kind; the empty reading only compares a value with its key.
type reading struct {
	kind    string
	take    func(*object) // stores the decoded object; calls are sequential
	problem *string       // receives the reason for an unreadable value; nil for none
}

// examination is a value to read and compare with its key.
type examination struct {
	pass    *pass
	asked   bool // otherwise the value is not read
	records *Records
	key     keys.Key
	entry   inspect.Entry
	read    reading
	object  *object
	differs string // how the value differs from its key
	err     error  // of decoding
}

// examine decrypts a value if the value has a reading or all values are checked. An error is about
// reading the file.
func (p *pass) examine(x examination) (examination, error) {
	x.pass, x.asked = p, x.read.kind != "" || p.check
	if !x.asked || p.decrypted {
		return x, nil
	}
	return x, p.reader.Decrypt(p.ctx, &x.entry)
}

// decode parses the value. Calls may run concurrently.
func (x *examination) decode() {
	if !x.asked || x.entry.Undecryptable != nil {
		return
	}
	if x.read.kind != "" {
		if x.object, x.err = decodeObject(x.read.kind, x.entry.Value); x.err == nil {
			m := &x.object.Metadata
			x.differs = differs(x.key, m.Name, m.Namespace, m.Annotations)
		}
	} else if !x.agrees() {
		m, err := encoding.ReadMeta(x.entry.Value)
		x.differs, x.err = differs(x.key, m.Name, m.Namespace, m.Annotations), err
	}
}

// agrees reports whether a glance shows that a value is sound and agrees with its key. Otherwise
// the value must be decoded.
func (x *examination) agrees() bool {
	g, _ := x.pass.glances.Get().(*encoding.Glance)
	if g == nil {
		g = new(encoding.Glance)
	}
	defer x.pass.glances.Put(g)
	return g.Glance(x.entry.Value) && string(g.Name) == x.key.Name && string(g.Namespace) == x.key.Namespace &&
		!slices.ContainsFunc(g.Annotations, func(a encoding.Annotation) bool {
			switch string(a.Name) {
			case AnnotationCluster:
				return string(a.Value) != x.key.Cluster
			case AnnotationCopied:
				return x.key.Shard != "" && string(a.Value) != x.key.Shard
			}
			return false
		})
}

// end stores the decoded object and records its problems.
func (x *examination) end() {
	typed, problem := x.read.kind != "", x.read.problem
	switch {
	case !x.asked:
		return
	case x.entry.Undecryptable != nil:
		x.records.Undecryptable++
		if typed {
			x.problem(CodeEncrypted.Because("%v", x.entry.Undecryptable))
		}
		return
	case x.err != nil:
		if problem != nil {
			*problem = x.err.Error()
		}
		x.problem(CodeUndecodable.Because("%v", x.err))
		return
	case typed:
		if x.read.take(x.object); problem != nil {
			*problem = ""
		}
	}
	if x.differs != "" {
		x.problem(CodeKeyMismatch.Because("%s", x.differs))
	}
}

func (x *examination) problem(f *finding.Finding) {
	r, key := x.records, x.key
	at := string(x.entry.Key)
	r.Problems = append(r.Problems, *f.At(at))
	isLogicalCluster := key.Resource == LogicalClusterType && key.Namespace == "" && key.Name == logicalCluster
	if f.Code != CodeKeyMismatch && key.Custom && (isLogicalCluster || key.Resource == BindingType) {
		if r.Hidden == nil {
			r.Hidden = map[string]bool{}
		}
		r.Hidden[at] = true
	}
}

// differs describes the differences between an object and its key; "" for none. kcp.io/cluster and
// kcp.io/shard are only in updated objects: a server derives them from the key.
func differs(key keys.Key, name, namespace string, annotations map[string]string) string {
	cluster, named := annotations[AnnotationCluster]
	shard, copied := annotations[AnnotationCopied]
	var wrong []string
	for _, c := range []struct {
		what    string
		differs bool
	}{
		{"metadata.name", name != key.Name}, {"metadata.namespace", namespace != key.Namespace},
		{"kcp.io/cluster", named && cluster != key.Cluster},
		{"kcp.io/shard", copied && key.Shard != "" && shard != key.Shard},
	} {
		if c.differs {
			wrong = append(wrong, c.what)
		}
	}
	switch len(wrong) {
	case 0:
		return ""
	case 1:
		return wrong[0] + " of the value differs from the key"
	}
	return strings.Join(wrong, " and ") + " of the value differ from the key"
}

// add counts an entry and examines its value; read is empty for a value of another kind.
func (r *Records) add(p *pass, key keys.Key, e *inspect.Entry, read reading) (examination, error) {
	r.Amount.add(e)
	of := Resource{Resource: TypeName(key.Resource), Identity: key.Identity, Custom: key.Custom}
	amount := r.tally[of]
	if amount == nil {
		if r.tally == nil {
			r.tally = map[Resource]*Amount{}
		}
		of.Resource, of.Identity = TypeName(p.names.resource(key.Resource)), p.names.of(of.Identity)
		amount = &Amount{}
		r.tally[of] = amount
	}
	amount.add(e)
	return p.examine(examination{records: r, key: key, entry: *e, read: read})
}

func (r *Records) finish() {
	r.Resources = make([]Resource, 0, len(r.tally))
	for of, a := range r.tally {
		of.Amount = *a
		r.Resources = append(r.Resources, of)
	}
	r.tally = nil
	slices.SortFunc(r.Resources, func(a, b Resource) int {
		byType := compareResources(schema.GroupResource(a.Resource), schema.GroupResource(b.Resource))
		switch c := cmp.Or(byType, strings.Compare(a.Identity, b.Identity)); {
		case c != 0 || a.Custom == b.Custom:
			return c
		case a.Custom:
			return 1
		}
		return -1
	})
}

func compareResources(a, b schema.GroupResource) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
}

// names holds each name once: thousands of logical clusters bind the same types, and a substring of
// a key would keep the whole key in memory.
type names map[string]string

func (n names) of(name string) string {
	if known, ok := n[name]; ok {
		return known
	}
	name = strings.Clone(name)
	n[name] = name
	return name
}

func (n names) resource(gr schema.GroupResource) schema.GroupResource {
	return schema.GroupResource{Group: n.of(gr.Group), Resource: n.of(gr.Resource)}
}
