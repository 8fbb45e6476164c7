package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

const (
	// requestLimit is the default of etcd's --max-request-bytes (server/embed/config.go).
	requestLimit = 1536 << 10
	nearLimit    = requestLimit / 10 * 9
	// compactRevKey is where API servers agree on compactions (apiserver
	// pkg/storage/etcd3/compact.go).
	compactRevKey = "compact_rev_key"
)

// checkEntry checks one record, and keeps the parts of it that checks behind the pass need.
func (d *doctor) checkEntry(e *inspect.Entry) error {
	if e.Lease != 0 {
		if _, known := d.leases[e.Lease]; !known && resourceName(e) != "masterleases" { // reported by checkMasters
			d.leaseless.add(resourceName(e), e.Key)
		}
	}
	switch n := len(e.Key) + len(e.Stored); {
	case n > requestLimit:
		d.raise(e.Key, codeTooLarge.Because("the value has %d bytes; etcd takes requests up to %d by default", len(e.Stored), requestLimit))
	case n > nearLimit:
		d.raise(e.Key, codeNearLimit.Because("the value has %d bytes; etcd takes requests up to %d by default", len(e.Stored), requestLimit))
	}
	key, err := e.ParseKey()
	if err != nil {
		storage, below := d.layouts.Of(e.Key)
		switch {
		case below && storage.Prefix != "": // below the empty prefix is everything
			d.stray.add(storage.Prefix, e.Key)
		case string(e.Key) != compactRevKey:
			d.foreign.add("", e.Key)
		}
		return nil
	}
	d.countEncryption(key, e)
	_, checked := e.Layout().(keys.Kubernetes)
	if e.Undecryptable != nil {
		d.unread[key.Resource] = true
		if checked {
			d.see(key, e, encoding.Meta{})
		}
		return nil
	}
	meta, err := decode(e)
	switch {
	case errors.Is(err, native.ErrUnknownKind):
		d.unknown.add(meta.GVK(), e.Key)
	case errors.Is(err, errMetadata) && key.IsCustom():
		d.unread[key.Resource] = true
		d.raise(e.Key, codeBadMetadata.Because("%s", err))
		if checked {
			d.see(key, e, meta)
		}
		return nil
	case err != nil:
		d.unread[key.Resource] = true
		d.raise(e.Key, codeUndecodable.Because("%s", err))
		return nil
	}
	if !checked {
		storage, _ := d.layouts.Of(e.Key)
		d.unchecked.add(storage.Prefix+" ("+string(storage.Flavour)+")", e.Key)
		return nil
	}
	d.checkName(key, e, meta)
	d.see(key, e, meta)
	d.keep(key, e, meta)
	return nil
}

// errMetadata is returned for an object that decodes, but for its metadata.
var errMetadata = errors.New("metadata is not that of an object")

// decode decodes a value as a server does. ErrUnknownKind comes with metadata, errMetadata with the
// type.
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

// checkName compares a key with name and namespace of the object. Records of API servers have
// others.
func (d *doctor) checkName(key keys.Key, e *inspect.Entry, meta encoding.Meta) {
	if key.Resource.Group == "" && !keys.IsBuiltin(key.Resource) || isRecord(key.Resource) {
		return
	}
	switch {
	case meta.Name != key.Name:
		d.raise(e.Key, codeKeyMismatch.Because("the object in it is named %q", meta.Name))
	case meta.Namespace != key.Namespace:
		d.raise(e.Key, codeKeyMismatch.Because("the object in it is in namespace %q", meta.Namespace))
	}
}

// isRecord reports whether the resource is of records of API servers, which are no objects.
func isRecord(gr gvr.GroupResource) bool {
	switch gr.Resource {
	case "masterleases", "peerserverleases", "ranges":
		return gr.Group == ""
	}
	return false
}

func resourceName(e *inspect.Entry) string {
	k, err := e.ParseKey()
	if err != nil {
		return "no resource"
	}
	return plain(k.Resource)
}

// concludeRecords reports the counts.
func (d *doctor) concludeRecords(context.Context) error {
	d.foreign.each(func(_ string, n int, first []byte) {
		d.raise(first, codeForeignKeys.Because("%s that no layout of an API server explains", things(n, "key")).About(n))
	})
	d.stray.each(func(prefix string, n int, first []byte) {
		d.raise(first, codeStrayKeys.Because("%s below %s that its layout does not explain", things(n, "key"), prefix).About(n))
	})
	d.unchecked.each(func(where string, n int, first []byte) {
		d.raise(first, codeLayoutUnchecked.Because("%s: %s; relations between them were not checked", where, things(n, "object")).About(n))
	})
	d.unknown.each(func(gvk gvr.GroupVersionKind, n int, first []byte) {
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		d.raise(first, codeUnknownKind.Because(
			"%s of %s %s: an old type that was removed, one of a newer server, or of an aggregated one", things(n, "object"), apiVersion, kind).About(n))
	})
	d.leaseless.each(func(resource string, n int, first []byte) {
		d.raise(first, codeLeaseGone.Because("%s of %s with a lease that the file does not have", things(n, "key"), resource).About(n))
	})
	d.concludeEncryption()
	return nil
}

// concludeEncryption reports the keys that values need, and resources with several.
func (d *doctor) concludeEncryption() {
	d.encrypted.each(func(by string, n int, first []byte) {
		d.raise(first, codeEncryptionKeys.Because("%s encrypted by %s", things(n, "value"), by).About(n))
	})
	for _, at := range d.encryption.order {
		ways := d.encryption.by[at]
		if len(ways.order) < 2 {
			continue
		}
		var parts []string
		ways.each(func(by string, n int, _ []byte) {
			if by == "" {
				by = "in the clear"
			}
			parts = append(parts, by+": "+things(n, "object"))
		})
		d.raise(ways.first(), codeMixedEncryption.Because("%s: %s", plain(at.resource), strings.Join(parts, ", ")))
	}
}

// countEncryption counts a value by its encryption.
func (d *doctor) countEncryption(key keys.Key, e *inspect.Entry) {
	by, encrypted := encoding.Encryption(e.Stored)
	d.encryption.of(folder{key.Prefix, key.Resource}).add(by, e.Key)
	switch {
	case encrypted && e.Undecryptable != nil && d.options.Keys:
		d.raise(e.Key, codeEncrypted.Because("%s", e.Undecryptable))
	case encrypted && e.Undecryptable != nil:
		d.encrypted.add(by, e.Key)
	}
}
