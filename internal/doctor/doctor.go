package doctor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/keys"
)

// Options say what to check against.
type Options struct {
	Ignore  []string // codes to leave out
	Quota   int64    // of the etcd to restore into, in bytes; 0 if unknown
	Etcd    string   // release of the etcd to restore into, such as "3.5.16"; "" if unknown
	Keys    bool     // the reader has an encryption configuration
	Archive bool     // the file is an archive, which is not meant to be restored

	NewMachines bool // it will be restored on other machines
}

// doctor is one run.
type doctor struct {
	ctx     context.Context
	err     error // the first error of reading; it ends the run
	reader  *inspect.Reader
	options Options
	*finding.Report
	damaged bool // no record is trusted
	layouts keys.Layouts
	leases  map[int64]int64
	types   *inspect.Types
	kinds   map[gvr.GroupKind]*inspect.Type
	dead    []string       // APIServices that do not answer
	rules   bounded.Budget // for rules of CustomResourceDefinitions
	hooks   bounded.Budget // for match conditions of webhooks
	addKCP  func(*inspect.Entry) error
	kcp     func() *clusters.File // the records of addKCP; both are nil for a file without kcp
	index
}

// Damaged returns the report on a file that cannot be opened because of err.
func Damaged(err error, o Options) *finding.Report {
	r := newReport(o)
	r.Add(CodeDamaged.Because("%s", err))
	return r
}

// Examine reports on the snapshot of r. The report on a damaged file has its damage only. An error
// means that it could not be read.
func Examine(ctx context.Context, r *inspect.Reader, o Options) (*finding.Report, error) {
	d := &doctor{ctx: ctx, reader: r, options: o, Report: newReport(o), kinds: map[gvr.GroupKind]*inspect.Type{}, index: index{
		places: places{by: map[location]*place{}},
		unread: map[gvr.GroupResource]bool{}, orphans: map[gvr.GroupResource]bool{}, namespaces: map[space]labels.Set{}, whole: map[string]bool{},
		kept: map[string][]stored{}, beats: map[string]time.Time{},
		local: map[gvr.GroupVersion]bool{}, aggregated: map[gvr.GroupVersion]bool{},
	}}
	for _, phase := range []func(){
		d.verify, d.checkFile, d.prepare, d.read,
		d.checkEncryption, d.checkDefinitions, d.checkWrites, d.checkConversion, d.checkOwners,
		d.checkAPIServices, d.checkCalico, d.checkNamespaces, d.checkDeletions, // the first names dead APIServices
		d.checkWebhooks, d.checkMasters, d.checkRemovals, d.checkClashes, d.checkHeartbeats, d.checkTokens, d.checkMachines, d.checkKCP, d.reportGroups,
	} {
		if phase(); d.err != nil {
			return nil, d.err
		}
		if d.damaged {
			break
		}
	}
	d.Sort()
	return d.Report, nil
}

// failed keeps the first error, and tells whether there is one.
func (d *doctor) failed(err error) bool {
	d.err = cmp.Or(d.err, err)
	return d.err != nil
}

// prepare reads what checks of records need.
func (d *doctor) prepare() {
	var err error
	if d.layouts, err = d.reader.Layouts(d.ctx); d.failed(err) {
		return
	}
	if d.leases, err = d.reader.Snapshot().Leases(d.ctx); d.failed(err) {
		return
	}
	if d.types, err = d.reader.Defined(d.ctx); d.failed(err) {
		return
	}
	for _, t := range d.types.All() {
		t.CRD = nil // its schemas are large
	}
	if slices.ContainsFunc(d.layouts.Storages(), func(s keys.Storage) bool { return s.Flavour.KCP() }) {
		d.addKCP, d.kcp, err = clusters.Checking(d.ctx, d.reader)
		d.failed(err)
	}
}

// read takes each record once.
func (d *doctor) read() {
	d.define()
	writers, finder := d.writers(), d.newMachines()
	type seen struct {
		look
		refused []*finding.Finding
		ties    []group
	}
	see := func(ctx context.Context, e *inspect.Entry) seen {
		l := lookAt(e)
		return seen{l, writers.check(ctx, e), ties(finder, e, &l)}
	}
	each(d, nil, see, func(e *inspect.Entry, s *seen, ruled bool) {
		d.types.Count(e)
		d.addWrites(e, s.refused, ruled)
		for _, g := range s.ties {
			d.groups.add(g, e.Key)
		}
		if d.checkEntry(e, &s.look); d.addKCP != nil {
			d.failed(d.addKCP(e))
		}
	})
	for _, t := range d.types.All() {
		if gk := (gvr.GroupKind{Group: t.Resource.Group, Kind: t.Kind}); d.kinds[gk] == nil && t.Kind != "" {
			d.kinds[gk] = t
		}
	}
}

// plain is a resource without its version, as people write it: "pods", "widgets.example.com".
func plain(gr gvr.GroupResource) string { return strings.TrimSuffix(gr.String(), ".") }
