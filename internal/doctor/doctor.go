package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Options select the checks.
type Options struct {
	Ignore []string // codes to omit
	Quota  int64    // of the etcd to restore into, in bytes; 0 if unknown
	Etcd   string   // release of the etcd to restore into, such as "3.5.16"; "" if unknown
	// minor release of the API server to restore with: 36 for Kubernetes 1.36; 0 if unknown
	Kubernetes int
	Keys       bool // the reader has an encryption configuration
	Archive    bool // the file is an archive, not meant for a restore

	NewMachines bool // the restore uses other machines
	Validate    bool // validate built-in objects like an API server
}

// doctor is one run, with the data of its checks.
type doctor struct {
	ctx     context.Context
	reader  *inspect.Reader
	options Options
	*finding.Report
	layouts keys.Layouts
	leases  map[int64]int64
	types   *inspect.Types
	rules   bounded.Budget // for rules of CustomResourceDefinitions
	hooks   bounded.Budget // for match conditions of webhooks
	addKCP  func(*inspect.Entry) error
	kcp     func() *kcp.File // the records of addKCP; both are nil for a file without kcp
	index
}

// check is one check with its reported codes. If run is nil, the pass over all records includes the
// check.
type check struct {
	run   func(*doctor) error
	codes []*finding.Code
	keeps []string // types whose objects run finds in d.kept
}

// keeping returns c for a check that reads objects of types such as "nodes" from d.kept. d.kept has
// only Secrets of ServiceAccounts and only terminating namespaces: see keep.
func (c check) keeping(types ...string) check {
	c.keeps = types
	return c
}

// checks returns all checks, in the order of their codes in documents.
func checks() []check {
	on := func(run func(*doctor) error, codes ...*finding.Code) check { return check{run: run, codes: codes} }
	return []check{
		on(checkMachines, machines.Codes()...).keeping("nodes"),
		on(nil, CodeDamaged), // by verify
		on(checkFile, codeNoLiveKey, codeNoDigest, codeBumpRevision, codeOverQuota, codeNearQuota, codeAlarmNoSpace,
			codeAlarmCorrupt, codeEtcdTooOld, codeEtcdOlder, codeEtcdVersion),
		on(nil, codeForeignKeys, codeStrayKeys, codeLayoutUnchecked, finding.Undecodable, codeBadMetadata,
			codeUnknownKind, codeKeyMismatch, codeDuplicateUID, codeTooLarge, codeNearLimit, codeLeaseGone),
		on(checkReleases, codeVersionDead, codeVersionOld, codePrunedField),
		on(checkUnserved, codeUnservedAPI, codeUnservedName, codeHelmRelease),
		on(checkNamespacesThere, codeNamespaceGone),
		on(nil, finding.Encrypted, codeEncryptionKeys),
		on(checkEncryption, codeMixedEncryption),
		on(nil, codeCRDUnreadable), // by define
		on(checkVersionsOfObjects, codeVersionUnlisted, codeListInvalid, codeListLacks, codeListNeeded, codeListExtra,
			codeManagedVersion),
		on(checkWrites, CodeUpdateRefused, CodeApplyRefused, codeHiddenField),
		on(checkOrphans, codeOrphans),
		on(checkDefinitionsStay, codeCRDTerminating),
		on(checkConversion, codeConversionGone, codeConversionNeeded, codeConversion),
		on(checkOwners, codeOwnerGone, codeOwnerUnresolvable, codeOwnerNamespaced, codeOwnerUnchecked),
		on(checkNamespacesStay, codeNamespaceTerminating).keeping("namespaces"),
		on(checkDeletions, codeDeletingVolume, codeDeleting),
		on(checkWebhooks, codeWebhookServiceGone, codeWebhookDeadlock, codeWebhookCore, codeWebhookEndpoints).
			keeping(validating, mutating),
		on(checkAPIServices, codeAPIServiceGone, codeAPIServiceEndpoints, codeAPIServiceUnavailable),
		on(checkCalicoData, codeCalicoEmpty),
		on(checkCalico, codeCalicoMigrating, codeCalicoLocked),
		on(checkMasters, codeMasterLease, codeMasterUnlisted).keeping("masterleases"),
		on(checkRemovals, codeMemberRemoval).keeping("nodes"),
		on(checkAddresses, codeAddressTwice, codeAddressLeft),
		on(checkHeartbeats, codeNodeSilent).keeping("nodes"),
		on(checkTokens, codeTokenWithoutUse).keeping("secrets"),
		on(checkKCP, codeShardPartial, codeShardTwice, kcp.CodeClusterTwice, codeClusterOrphans, codeStaleCopies,
			codeClusterMismatch, kcp.CodeClusterTerminating, kcp.CodeClusterMigrating, kcp.CodeClusterMisnamed,
			kcp.CodeWorkspaceGone, kcp.CodeWorkspaceAstray, kcp.CodeBoundDefinitionGone, kcp.CodeIdentityUnbound),
	}
}

// Codes returns all codes of findings, by subject.
func Codes() (all []*finding.Code) {
	for _, c := range checks() {
		all = append(all, c.codes...)
	}
	return all
}

// Unreadable returns the codes of objects and definitions that make lists of an API server fail.
func Unreadable() []*finding.Code {
	return []*finding.Code{codeVersionDead, codeVersionUnlisted, codeCRDUnreadable, finding.Undecodable,
		finding.Encrypted, codeEncryptionKeys}
}

func newReport(o Options) *finding.Report {
	r := &finding.Report{Findings: []finding.Finding{}, Counts: map[*finding.Code]int{}, Ignored: o.Ignore}
	if o.Archive {
		r.Ignored = append(finding.Names(codeBumpRevision, codeEtcdVersion, codeShardPartial), o.Ignore...)
	}
	return r
}

// Damaged returns the report on a file that cannot be opened because of err.
func Damaged(err error, o Options) *finding.Report {
	r := newReport(o)
	r.Add(CodeDamaged.Because("%s", err))
	return r
}

// Examine returns the report on the snapshot of r. The report on a damaged file has only the
// damage. An error means that the snapshot could not be read.
func Examine(ctx context.Context, r *inspect.Reader, o Options) (*finding.Report, error) {
	checking, cancel := context.WithCancel(ctx)
	defer cancel()
	damage := newReport(o)
	var damaged bool
	var unread error
	var verifying sync.WaitGroup
	verifying.Go(func() { damaged, unread = verify(ctx, r.Snapshot(), damage, cancel) })
	found := newReport(o)
	failed := runChecks(checking, r, o, found)
	verifying.Wait()
	if damaged {
		found, failed = damage, nil
	}
	found.Sort()
	return found, cmp.Or(unread, failed)
}

func newDoctor(ctx context.Context, r *inspect.Reader, o Options, found *finding.Report) *doctor {
	return &doctor{ctx: ctx, reader: r, options: o, Report: found, index: index{
		kinds: map[gvr.GroupKind]*inspect.Type{}, places: places{by: map[location]*place{}},
		unread: map[string]bool{}, namespaces: map[space]labels.Set{}, whole: map[string]bool{},
		kept: map[string][]stored{}, beats: map[string]time.Time{},
		local: map[gvr.GroupVersion]bool{}, aggregated: map[gvr.GroupVersion]bool{},
		always: map[gvr.GroupVersionKind]bool{}, notServed: map[gvr.GroupVersionKind]bool{},
	}}
}

// runChecks runs all checks.
func runChecks(ctx context.Context, r *inspect.Reader, o Options, found *finding.Report) error {
	d := newDoctor(ctx, r, o, found)
	steps := []func(*doctor) error{prepare, define, readRecords}
	for _, c := range checks() {
		for _, of := range c.keeps {
			d.kept[of] = nil
		}
		if c.run != nil {
			steps = append(steps, c.run)
		}
	}
	for _, step := range append(steps, reportGroups) {
		if err := step(d); err != nil {
			return err
		}
	}
	return nil
}

// prepare reads the input of the checks of records.
func prepare(d *doctor) (err error) {
	if d.layouts, err = d.reader.Layouts(d.ctx); err != nil {
		return err
	}
	if d.leases, err = d.reader.Snapshot().Leases(d.ctx); err != nil {
		return err
	}
	if d.types, err = d.reader.Defined(d.ctx); err != nil {
		return err
	}
	for _, t := range d.types.All() {
		t.CRD = nil // its schemas are large
	}
	if slices.ContainsFunc(d.layouts.Storages(), func(s keys.Storage) bool { return s.Flavour.KCP() }) {
		d.addKCP, d.kcp, err = kcp.Checking(d.ctx, d.reader)
	}
	return err
}

// readRecords checks each record once.
func readRecords(d *doctor) error {
	st, err := d.reader.Snapshot().Counts(d.ctx)
	if err != nil {
		return err
	}
	d.uids = make(map[objects.UID]uint32, st.Keys)
	finder, err := newFinder(d)
	if err != nil {
		return err
	}
	type seen struct {
		look
		refused []*finding.Finding
		groups  []group
	}
	writers := newWriters(d)
	see := func(ctx context.Context, e *inspect.Entry) seen {
		l := lookAt(e)
		refused, groups := append(writers.check(ctx, e), d.checkBuiltin(e)...), ties(finder, e, &l)
		return seen{l, refused, append(groups, d.unknownFields(e)...)}
	}
	err = each(d, nil, see, func(e *inspect.Entry, s *seen, ruled bool) error {
		d.types.Count(e)
		d.addWrites(e, s.refused, ruled)
		for _, g := range s.groups {
			d.groups.add(g, e.Key)
		}
		checkRecord(d, e, &s.look)
		if d.addKCP != nil {
			return d.addKCP(e)
		}
		return nil
	})
	for _, t := range d.types.All() {
		if gk := (gvr.GroupKind{Group: t.Resource.Group, Kind: t.Kind}); d.kinds[gk] == nil && t.Kind != "" {
			d.kinds[gk] = t
		}
	}
	return err
}

// raise adds a finding about a key, or about the file if key is empty.
func (d *doctor) raise(key []byte, code *finding.Code, format string, args ...any) {
	d.Add(code.Because(format, args...).At(string(key)))
}

// raiseMany adds a finding about counted things. The first verb of format takes their number.
func (d *doctor) raiseMany(c count, code *finding.Code, thing, format string, args ...any) {
	found := code.Because(format, append([]any{phrase.Count(c.objects, thing)}, args...)...)
	d.Add(found.At(string(c.first)).About(c.objects))
}

// plain returns a resource without its version, in the form used by people: "pods",
// "widgets.example.com".
func plain(gr gvr.GroupResource) string { return strings.TrimSuffix(gr.String(), ".") }

// The quotas of etcd (server/storage/quota.go).
const (
	defaultQuota   int64 = 2 << 30 // bytes
	suggestedQuota int64 = 8 << 30 // suggested maximum
)

// Codes about the file.
var (
	CodeDamaged      = finding.Lookup("damaged")
	codeNoLiveKey    = finding.Lookup("no-live-key")
	codeNoDigest     = finding.Lookup("no-digest")
	codeBumpRevision = finding.Lookup("bump-revision")
	codeOverQuota    = finding.Lookup("over-quota")
	codeNearQuota    = finding.Lookup("near-quota")
	codeAlarmNoSpace = finding.Lookup("alarm-nospace")
	codeAlarmCorrupt = finding.Lookup("alarm-corrupt")
	codeEtcdTooOld   = finding.Lookup("etcd-too-old")
	codeEtcdOlder    = finding.Lookup("etcd-older")
	codeEtcdVersion  = finding.Lookup("etcd-version")
)

// verify checks the file like etcdshift verify, and adds the damage to a report. It calls stop at
// the first damage: no record is trusted then.
func verify(ctx context.Context, s *snapshot.Snapshot, to *finding.Report, stop func()) (damaged bool, err error) {
	err = s.Guard(func() error {
		for err := range snapshot.Verify(ctx, s) {
			if !snapshot.IsDamage(err) {
				return err
			}
			damaged = true
			to.Add(CodeDamaged.Because("%s", err))
			stop()
		}
		return ctx.Err()
	})
	return damaged, err
}

// checkFile checks the file as a whole.
func checkFile(d *doctor) error {
	st, err := d.reader.Snapshot().Facts(d.ctx)
	if err != nil {
		return err
	}
	if st.Keys == 0 {
		d.raise(nil, codeNoLiveKey, "no key is live, %d are deleted: a cluster restored from the file is empty",
			st.Tombstones)
	}
	switch {
	case st.DataDir != nil:
		d.raise(nil, codeNoDigest, "the data directory of a member: nothing shows whether its database was "+
			"copied whole")
	case st.Compression == snapshot.Etcdbrctl: // whose files have digests, which were checked
	case st.Digest != "ok":
		d.raise(nil, codeNoDigest,
			"a database file of a member (member/snap/db): nothing shows whether it was copied whole, and the WAL "+
				"beside it may hold newer writes")
	}
	raised := func(alarm snapshot.Alarm) bool {
		return slices.ContainsFunc(st.Alarms, func(r snapshot.Raised) bool { return r.Kind == alarm })
	}
	if raised(snapshot.AlarmNoSpace) {
		d.raise(nil, codeAlarmNoSpace, "a member has raised it, and a restore keeps it: the restored etcd "+
			"refuses all writes")
	}
	if raised(snapshot.AlarmCorrupt) {
		d.raise(nil, codeAlarmCorrupt, "the data of a member differed, and a restore keeps the alarm: the restored "+
			"etcd refuses requests")
	}
	checkVersions(d, st)
	checkQuota(d, int64(st.Pages)*int64(st.PageSize))
	most := ""
	if bump := snapshot.MostBump(st.Revision); bump < 1_000_000_000 { // the number in the remedy
		most = fmt.Sprintf("; at most %d may be added with --bump-revision here, or etcd does not start", bump)
	}
	d.raise(nil, codeBumpRevision, "the store is at revision %d. Clients that have seen later revisions keep "+
		"their caches after a plain restore, and miss changes%s", st.Revision, most)
	return nil
}

// checkVersions checks the etcd to restore into: from 3.6 on, an etcd older than that of the file
// does not start.
func checkVersions(d *doctor, st snapshot.Status) {
	cluster, storage := cmp.Or(st.ClusterVersion, "-"), cmp.Or(st.StorageVersion, "-")
	written := fmt.Sprintf("it was written by a cluster at version %s (storage version %s)", cluster, storage)
	to := d.options.Etcd
	if st.StorageVersion == "" && st.ClusterVersion == "" {
		return
	} else if to == "" {
		d.raise(nil, codeEtcdVersion, "%s", written)
		return
	}
	switch older, starts := st.StartsOn(to); {
	case !starts:
		d.raise(nil, codeEtcdTooOld, "%s; etcd %s does not start on it", written, to)
	case older:
		d.raise(nil, codeEtcdOlder, "%s; etcd %s does not read these versions, and starts", written, to)
	}
}

// checkQuota compares the size of the database file on a member with the quota.
func checkQuota(d *doctor, size int64) {
	switch quota := d.options.Quota; {
	case quota > 0 && size >= quota:
		d.raise(nil, codeOverQuota, "the database has %d bytes, the quota is %d: the first write raises the "+
			"alarm NOSPACE", size, quota)
	case quota > 0 && size >= quota/5*4:
		d.raise(nil, codeNearQuota, "the database has %d bytes, the quota is %d", size, quota)
	case quota > 0 || size < defaultQuota/5*4:
	case size < defaultQuota:
		d.raise(nil, codeNearQuota, "the database has %d bytes; the quota of an etcd without "+
			"--quota-backend-bytes is %d", size, defaultQuota)
	case size < suggestedQuota:
		d.raise(nil, codeNearQuota,
			"the database has %d bytes: an etcd without --quota-backend-bytes, whose quota is %d, refuses all writes",
			size, defaultQuota)
	default:
		d.raise(nil, codeNearQuota, "the database has %d bytes: more than the %d that etcd suggests as the "+
			"largest quota", size, suggestedQuota)
	}
}
