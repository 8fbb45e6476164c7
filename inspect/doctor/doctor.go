package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Options are the options of Examine.
type Options struct {
	Ignore  []string // codes to leave out
	Quota   int64    // bytes; of the etcd to restore into; 0 where it is unknown
	Etcd    string   // release of the etcd to restore into, such as "3.5.16"; "" where it is unknown
	Keys    bool     // the reader has an encryption configuration
	Archive bool     // the file is an archive, which is not meant to be restored
}

// ignored are the codes to leave out.
func (o Options) ignored() []string {
	if o.Archive {
		return append(finding.Names(codeBumpRevision, codeEtcdVersion, codeShardPartial), o.Ignore...)
	}
	return o.Ignore
}

// doctor is one run.
type doctor struct {
	snapshot *snapshot.Snapshot
	reader   *inspect.Reader
	options  Options
	*findings
	layouts keys.Layouts
	leases  map[int64]int64
	kinds   map[gvr.GroupKind]kind
	dead    []string // APIServices that do not answer
	addKCP  func(*inspect.Entry) error
	kcp     func() *clusters.File // of the entries of addKCP; both are nil for a file without kcp
	index
}

// kind is the resource of a kind.
type kind struct {
	resource            gvr.GroupResource
	namespaced, builtin bool
}

// Damaged is the report about a file that cannot be opened for err.
func Damaged(err error, o Options) *Report {
	f := newFindings(o)
	f.raise(nil, CodeDamaged.Because("%s", err))
	return f.report()
}

// Examine checks the snapshot of r. Of a damaged file it reports the damage alone: its records
// cannot be trusted. An error is about reading.
func Examine(ctx context.Context, r *inspect.Reader, o Options) (*Report, error) {
	d := &doctor{snapshot: r.Snapshot(), reader: r, options: o, findings: newFindings(o), kinds: map[gvr.GroupKind]kind{}}
	whole, err := d.checkFile(ctx)
	if err != nil || !whole {
		return d.report(), err
	}
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	if err := d.read(ctx); err != nil {
		return nil, err
	}
	for _, conclude := range []func(context.Context) error{
		d.concludeRecords, d.concludeDefinitions, d.concludeWrites, d.concludeConversion, d.concludeOwners, d.concludeAPIServices,
		d.concludeNamespaces, // after the APIServices, which may hold them
		d.concludeWebhooks, d.concludeControlPlane, d.concludeKCP,
	} {
		if err := conclude(ctx); err != nil {
			return nil, err
		}
	}
	return d.report(), nil
}

// read checks each record once.
func (d *doctor) read(ctx context.Context) error {
	for e, err := range d.reader.Live(ctx, nil) {
		if err == nil {
			err = d.checkEntry(e)
		}
		if err == nil && d.addKCP != nil {
			err = d.addKCP(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prepare reads layouts, leases and types.
func (d *doctor) prepare(ctx context.Context) (err error) {
	if d.layouts, err = d.reader.Layouts(ctx); err != nil {
		return err
	}
	if d.leases, err = d.snapshot.Leases(ctx); err != nil {
		return err
	}
	types, err := d.reader.Types(ctx)
	if err != nil {
		return err
	}
	for _, t := range types.All() {
		gk := gvr.GroupKind{Group: t.Resource.Group, Kind: t.Kind}
		if _, twice := d.kinds[gk]; t.Kind != "" && !twice {
			d.kinds[gk] = kind{t.Resource, t.Namespaced, t.Builtin}
		}
	}
	d.index = newIndex()
	return d.prepareKCP(ctx)
}

// checkFile checks the file as a whole; whole is false where its records cannot be trusted.
func (d *doctor) checkFile(ctx context.Context) (whole bool, err error) {
	whole = true
	for err := range snapshot.Verify(ctx, d.snapshot) {
		if !isDamage(err) {
			return false, err
		}
		whole = false
		d.raise(nil, CodeDamaged.Because("%s", err))
	}
	if err := ctx.Err(); err != nil || !whole {
		return whole, err
	}
	for _, check := range []func(context.Context) error{d.checkDigest, d.checkAlarms, d.checkVersions, d.checkQuota} {
		if err := check(ctx); err != nil {
			return false, err
		}
	}
	revision, err := d.snapshot.Revision(ctx)
	most := ""
	if bump := snapshot.MostBump(revision); bump < 1_000_000_000 { // the remedy names that one
		most = fmt.Sprintf("; a server dies of a higher --bump-revision than %d here", bump)
	}
	d.raise(nil, codeBumpRevision.Because(
		"the store is at revision %d; clients of the cluster may have seen higher ones, "+
			"and would take what they cached for newer than what a plain restore holds%s", revision, most))
	return true, err
}

// isDamage reports whether err is about the file itself, rather than about reading it.
func isDamage(err error) bool {
	damage := []error{snapshot.ErrDamaged, snapshot.ErrDigest, snapshot.ErrTruncated, snapshot.ErrNotSnapshot}
	return slices.ContainsFunc(damage, func(target error) bool { return errors.Is(err, target) })
}

// plain is a resource without its version: "pods", "widgets.example.com".
func plain(gr gvr.GroupResource) string { return strings.TrimSuffix(gr.String(), ".") }
