package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// requestLimit is the default of etcd's --max-request-bytes (server/embed/config.go).
const requestLimit = 1536 << 10

// Codes about records.
var (
	codeForeignKeys     = finding.Lookup("foreign-keys")
	codeStrayKeys       = finding.Lookup("stray-keys")
	codeLayoutUnchecked = finding.Lookup("layout-unchecked")
	codeBadMetadata     = finding.Lookup("metadata-dropped")
	codeUnknownKind     = finding.Lookup("unknown-kind")
	codeKeyMismatch     = finding.Lookup("key-mismatch")
	codeDuplicateUID    = finding.Lookup("duplicate-uid").As(finding.Warning, "")
	codeTooLarge        = finding.Lookup("value-too-large")
	codeNearLimit       = finding.Lookup("value-near-limit")
	codeLeaseGone       = finding.Lookup("lease-gone")
	codeEncryptionKeys  = finding.Lookup("encryption-keys")
	codeMixedEncryption = finding.Lookup("mixed-encryption")
)

// checkRecord checks one record, and keeps the data for later checks.
func checkRecord(d *doctor, e *inspect.Entry, l *look) {
	key, err := e.ParseKey()
	// see checkMasters
	if _, known := d.leases[e.Lease]; e.Lease != 0 && !known && plain(key.Resource) != "masterleases" {
		d.groups.add(group{codeLeaseGone, cmp.Or(plain(key.Resource), "no resource")}, e.Key)
	}
	if n := len(e.Key) + len(e.Stored); n > requestLimit/10*9 {
		code := codeNearLimit
		if n > requestLimit {
			code = codeTooLarge
		}
		d.raise(e.Key, code, "the value has %d bytes; etcd takes requests up to %d by default",
			len(e.Stored), requestLimit)
	}
	if err == nil {
		checkValue(d, key, e, l)
		return
	}
	storage, below := d.layouts.Of(e.Key)
	switch {
	case below && storage.Prefix != "": // all keys are below the empty prefix
		d.groups.add(group{codeStrayKeys, storage.Prefix}, e.Key)
	case string(e.Key) != "compact_rev_key": // API servers use this key to agree on compactions
		d.groups.add(group{code: codeForeignKeys}, e.Key)
	}
}

// checkValue checks the value of a key of an API server.
func checkValue(d *doctor, key keys.Key, e *inspect.Entry, l *look) {
	p := d.place(key)
	countEncryption(d, p, e)
	err := l.err
	unknown, badMetadata := errors.Is(err, native.ErrUnknownKind), errors.Is(err, errMetadata) && key.IsCustom()
	kubernetes := isKubernetes(e)
	switch {
	case (err == nil || unknown) && !keys.IsCustom(key.Resource) && kubernetes:
		countVersion(d, e)
	case err == nil:
	case unknown:
		d.groups.add(group{codeUnknownKind, string(l.apiVersion) + " " + string(l.kind)}, e.Key)
	case badMetadata:
		d.raise(e.Key, codeBadMetadata, "%s", err)
	case e.Undecryptable == nil:
		d.raise(e.Key, finding.Undecodable, "%s", err)
	}
	readable := l.readable()
	if !readable {
		d.unread[p.name] = true
	}
	if kubernetes && (readable || badMetadata || e.Undecryptable != nil) {
		d.count(p, e, l)
	}
	switch {
	case readable && kubernetes:
		if !p.custom {
			d.addMentions(p, e, l)
		}
		if why := inspect.Misplaced(key, string(l.name), string(l.namespace)); why != "" {
			d.raise(e.Key, codeKeyMismatch, "%s", why)
		}
		d.keep(key, p, e, l)
	case readable:
		storage, _ := d.layouts.Of(e.Key)
		d.groups.add(group{codeLayoutUnchecked, storage.Prefix + " (" + string(storage.Flavour) + ")"}, e.Key)
	}
}

// isKubernetes reports whether an entry has the Kubernetes layout. Only these objects are checked
// against each other.
func isKubernetes(e *inspect.Entry) bool {
	_, is := e.Layout().(keys.Kubernetes)
	return is
}

// errMetadata is the error of an object with undecodable metadata, but decodable type.
var errMetadata = errors.New("metadata is not that of an object")

// decode decodes a value like a server, and returns its metadata. ErrUnknownKind comes with
// metadata, errMetadata with the type.
func decode(e *inspect.Entry) (encoding.Meta, error) {
	err := e.Check()
	if err != nil && !errors.Is(err, native.ErrUnknownKind) {
		return encoding.Meta{}, err
	}
	meta, metaErr := encoding.ReadMeta(e.Value)
	if metaErr == nil {
		return meta, err
	}
	v, _ := e.ParseValue() // did not fail before
	apiVersion, kind := v.GVK.ToAPIVersionAndKind()
	return encoding.Meta{APIVersion: apiVersion, Kind: kind}, fmt.Errorf("%w: %v", errMetadata, metaErr)
}

// countEncryption counts a value by its encryption.
func countEncryption(d *doctor, p *place, e *inspect.Entry) {
	by, encrypted := encoding.Encryption(e.Stored)
	p.encryption.add(by, e.Key)
	switch {
	case !encrypted || e.Undecryptable == nil:
	case d.options.Keys:
		d.raise(e.Key, finding.Encrypted, "%s", e.Undecryptable)
	default:
		d.groups.add(group{codeEncryptionKeys, by}, e.Key)
	}
}

// checkEncryption reports resources encrypted in several ways.
func checkEncryption(d *doctor) error {
	for at, ways := range d.encryption.all() {
		if len(ways.keys) < 2 {
			continue
		}
		var parts []string
		for by, c := range ways.all() {
			if by == "" {
				by = "in the clear"
			}
			parts = append(parts, by+": "+phrase.Count(c.objects, "object"))
		}
		d.raise(ways.total.first, codeMixedEncryption, "%s: %s", plain(at.resource), strings.Join(parts, ", "))
	}
	return nil
}

// groupReason returns the noun of a group, and its reason, a format for the number and the subject.
func groupReason(code *finding.Code) (thing, reason string) {
	switch code {
	case codeForeignKeys:
		return "key", "%[1]s that no layout of an API server explains"
	case codeStrayKeys:
		return "key", "%s below %s that its layout does not explain"
	case codeLayoutUnchecked:
		return "object", "%[2]s: %[1]s; relations between them were not checked"
	case codeUnknownKind:
		return "object", "%s of %s: an old type that was removed, one of a newer server, or of an aggregated one"
	case codeLeaseGone:
		return "key", "%s of %s with a lease that the file does not have"
	case codeEncryptionKeys:
		return "value", "%s encrypted by %s"
	case codeUnservedAPI, codeUnservedName:
		return "object", "%s of %s"
	case codePrunedField:
		return "object", "%s of %s, a field that the release does not know: its API server drops it at the next write"
	case codeOwnerUnchecked:
		return "object", "%s with an owner of kind %s, of which the file does not show whether it is there"
	}
	return machines.Wording(code)
}

// reportGroups reports the findings about several records each.
func reportGroups(d *doctor) error {
	for g, c := range d.groups.all() {
		thing, reason := groupReason(g.code)
		d.raiseMany(*c, g.code, thing, reason, g.subject)
	}
	return nil
}

// look holds the parts of one object needed by doctor.
type look struct {
	apiVersion, kind, name, namespace []byte // type only if err is errMetadata

	uid     objects.UID
	hasUID  bool
	owners  []encoding.Owner
	managed [][]byte       // the apiVersions in managedFields, sorted
	applied string         // the apiVersion last applied with kubectl; of built-in kinds
	meta    *encoding.Meta // nil if not needed
	err     error          // of decode
	beat    *time.Time     // of a node's Lease
}

// readable reports whether an API server can decode the value. A kind unknown to this build counts
// as readable: an API server of another version may know it.
func (l *look) readable() bool { return l.err == nil || errors.Is(l.err, native.ErrUnknownKind) }

// lookAt reads a value. It decodes the value only if a glance at its bytes is not enough.
func lookAt(e *inspect.Entry) (l look) {
	key, err := e.ParseKey()
	if err != nil {
		return l // see checkEntry
	}
	var g encoding.Glance
	if !e.Glance(&g) || needsMeta(key, &g) {
		meta, err := decode(e)
		l.meta, l.err = &meta, err
		managed := managedVersions(e.Value)
		if managed == nil {
			managed = g.Managed // of protobuf
		}
		g = glance(&meta)
		g.Managed = managed
	}
	l.apiVersion, l.kind, l.name, l.namespace, l.owners = g.APIVersion, g.Kind, g.Name, g.Namespace, g.Owners
	l.managed = sorted(g.Managed)
	if !keys.IsCustom(key.Resource) && l.readable() {
		l.applied = appliedVersion(e, &g, l.meta)
	}
	if machines.IsNodeLease(key) {
		if lease, err := decodeAs[coordinationv1.Lease](e); err == nil && lease.Spec.RenewTime != nil {
			l.beat = &lease.Spec.RenewTime.Time
		}
	}
	if l.hasUID = len(g.UID) > 0; l.hasUID {
		l.uid = objects.ToUID(g.UID)
	}
	return l
}

// needsMeta reports whether keep needs the whole metadata of an object, not only its glance.
func needsMeta(key keys.Key, g *encoding.Glance) bool {
	return key.Resource == gvr.GroupResource{Resource: "namespaces"} ||
		key.Resource == gvr.GroupResource{Resource: "secrets"} && len(g.Annotations) > 0
}

// glance returns the Glance of decoded metadata.
func glance(m *encoding.Meta) encoding.Glance {
	g := encoding.Glance{
		APIVersion: []byte(m.APIVersion), Kind: []byte(m.Kind), Name: []byte(m.Name), Namespace: []byte(m.Namespace),
		UID: []byte(m.UID),
	}
	for _, o := range m.OwnerReferences {
		g.Owners = append(g.Owners, encoding.Owner{APIVersion: []byte(o.APIVersion), Kind: []byte(o.Kind),
			UID: []byte(o.UID)})
	}
	return g
}

// uidText returns the UID for people.
func (l *look) uidText(e *inspect.Entry) string {
	meta, _ := encoding.ReadMeta(e.Value) // did not fail before
	return meta.UID
}

// each calls see on all processors with the entries whose keys have the prefix, and apply with each
// result, in the order of the file, up to an error. see must not use d. ruled is false if the
// budget for rules of CustomResourceDefinitions was used up before.
func each[T any](d *doctor, prefix []byte, see func(context.Context, *inspect.Entry) T,
	apply func(e *inspect.Entry, result *T, ruled bool) error,
) error {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	type seen struct {
		*inspect.Entry
		meter  *bounded.Meter
		result T
	}
	item := func(e *inspect.Entry) (seen, int) { return seen{Entry: e, meter: d.rules.Meter()}, len(e.Value) }
	work := func(s *seen) {
		if ctx.Err() == nil { // otherwise the scan ends with it
			s.result = see(bounded.WithMeter(ctx, s.meter), s.Entry)
		}
	}
	all := stream.Ahead(d.reader.Snapshot().Guard, d.reader.Live(ctx, prefix), item, work)
	return stream.Each(all, func(s *seen) error {
		err := cmp.Or(d.ctx.Err(), apply(s.Entry, &s.result, s.meter.Take()))
		if err != nil {
			cancel()
		}
		return err
	})
}
