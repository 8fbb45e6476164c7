package encryption

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/etcdshift/etcdshift/encoding"
)

// Decrypt returns the plaintext of a stored value of an object of gr under its complete etcd key.
// Plaintext is returned unchanged even if the configuration lacks the identity provider; a server
// could not read such a value.
//
// stale reports whether the next update by a server would store the object differently: with
// another key or provider, in plaintext, or under another key of the KMS plugin.
//
// err wraps encoding.ErrEncrypted for an undecryptable value and names provider, key and reason.
// Any other error says nothing about the value: ctx ended, or a KMS plugin stopped answering.
func (t *Transformers) Decrypt(
	ctx context.Context, gr schema.GroupResource, key, stored []byte,
) (plain []byte, stale bool, err error) {
	by, encrypted := describe(stored)
	if !encrypted {
		return stored, t.Encrypts(gr), nil
	}
	if by.name == kms && by.version == "v1" {
		return nil, false, encoding.Encrypted(stored)
	}
	gr = storageResource(gr)
	by, why := t.candidate(gr, by, stored)
	if why != "" {
		return nil, false, undecryptable(by, why)
	}
	if len(key) == 0 {
		return nil, false, errors.New("decrypting a value: no etcd key given")
	}
	library, done, err := t.use(ctx)
	if err != nil {
		return nil, false, err
	}
	defer done()
	plain, stale, err = library.TransformerForResource(gr).TransformFromStorage(ctx, stored, bound(key))
	if err == nil && by.name == aescbc && !isObject(plain) {
		err = errors.New("no object")
	}
	switch {
	case err == nil:
		return plain, stale, nil
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case by.name == kms && slices.Contains([]codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled},
		status.Code(err)):
		return nil, false, fmt.Errorf("decrypting a value of %s: the KMS plugin does not answer (%s)", by,
			status.Code(err))
	default:
		return nil, false, undecryptable(by, failure(by))
	}
}

// failure explains why a configured key did not decrypt a value. The library's own errors do not
// help ("cipher: message authentication failed").
func failure(by provider) string {
	switch by.name {
	case kms:
		return "the KMS plugin does not decrypt it: its key is gone, or the value is damaged or was copied from " +
			"another etcd key"
	case aesgcm:
		return "the key does not decrypt it: another key of that name, or the value is damaged or was copied from " +
			"another etcd key"
	default:
		return "the key does not decrypt it: another key of that name, or the value is damaged"
	}
}

// Encrypt returns the stored bytes of the plaintext of an object of gr under the complete etcd key:
// encrypted by the first provider configured for gr, or plain itself if [Transformers.Encrypts] is
// false. If plain is already encrypted, the error wraps encoding.ErrEncrypted; decrypt the value
// under its own key first.
func (t *Transformers) Encrypt(
	ctx context.Context, gr schema.GroupResource, key, plain []byte,
) (stored []byte, err error) {
	if by, encrypted := describe(plain); encrypted {
		return nil, undecryptable(by, "it cannot be encrypted again")
	}
	if !t.Encrypts(gr) {
		return plain, nil
	}
	if len(key) == 0 {
		return nil, errors.New("encrypting a value: no etcd key given")
	}
	gr = storageResource(gr)
	library, done, err := t.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	stored, err = library.TransformerForResource(gr).TransformToStorage(ctx, plain, bound(key))
	if err != nil {
		return nil, fmt.Errorf("encrypting a value of %s by %s: %w", gr, t.config.providers(gr)[0], err)
	}
	return stored, nil
}

// Encrypts reports whether Encrypt encrypts values of gr.
func (t *Transformers) Encrypts(gr schema.GroupResource) bool {
	if t == nil || storedBare(gr) {
		return false
	}
	providers := t.config.providers(storageResource(gr))
	return len(providers) > 0 && providers[0].name != identity
}

// candidate returns the configured provider and key named in the value, or the reason for their
// absence. This check precedes the library: the library cannot distinguish the reasons, and its
// aescbc panics on a value that ends after its first block (k8s.io/apiserver v0.37.2
// pkg/storage/value/encrypt/aes/aes.go).
func (t *Transformers) candidate(gr schema.GroupResource, by provider, stored []byte) (p provider, why string) {
	if t == nil {
		return by, "no encryption configuration is given"
	}
	if storedBare(gr) {
		return by, fmt.Sprintf("an API server does not encrypt %s", gr)
	}
	providers := t.config.providers(gr)
	if len(providers) == 0 {
		return by, fmt.Sprintf("the configuration has no rule for %s", gr)
	}
	sameProvider := false
	for _, c := range providers {
		sameProvider = sameProvider || c.name == by.name && c.version == by.version
		if c.name == identity || !bytes.HasPrefix(stored, []byte(c.prefix())) {
			continue
		}
		if n := len(stored) - len(c.prefix()); n < shortest(c.name) {
			return c, fmt.Sprintf("it is cut off: %d bytes after the key's name, and no value has so few", n)
		}
		p = c
	}
	switch {
	case p.name != "":
		return p, ""
	case by.version == "":
		return by, "it is cut off or damaged within the provider's name"
	case !sameProvider:
		return by, fmt.Sprintf("the configuration has no provider %s:%s for %s", by.name, by.version, gr)
	case by.key == "":
		return by, "it is cut off or damaged within the key's name"
	case by.name == kms:
		return by, fmt.Sprintf("the configuration has no KMS provider of that name for %s", gr)
	default:
		return by, fmt.Sprintf("the configuration has no key of that name for %s", gr)
	}
}

// shortest returns the length of the ciphertext of an empty value: nonce or IV, and tag or padding.
func shortest(name string) int {
	switch name {
	case aescbc:
		return 16 + 16
	case aesgcm:
		return 12 + 16
	case secretbox:
		return 24 + 16
	default:
		return 1
	}
}

// isObject reports whether plain can be a value stored by an API server. aescbc has no tag: a wrong
// key, or a cut at the end of a block, decrypts one value in 256 to noise. A server detects noise
// on decoding.
func isObject(plain []byte) bool {
	switch encoding.Detect(plain) {
	case encoding.FormatJSON:
		return json.Valid(plain)
	case encoding.FormatProtobuf, encoding.FormatCBOR:
		return true
	default:
		return false
	}
}

// bound returns the context that ciphertext is bound to. bound copies the key: the KMS v2
// transformer keeps the slice in a cache for ten minutes (pkg/storage/value/encrypt/aes/cache.go),
// while the caller's slice may be a reused buffer or an unmapped page by then.
func bound(key []byte) value.Context { return value.DefaultContext(bytes.Clone(key)) }

func undecryptable(by provider, why string) error {
	return fmt.Errorf("%w by %s: %s", encoding.ErrEncrypted, by, why)
}

// storedBare reports whether kube-apiserver stores the records of gr in plaintext under any
// configuration, even "*.*". Their storage uses the plain StorageFactory, without transformers
// (k8s.io/apiserver pkg/server/options/etcd.go), and no configuration may name them
// (nonRESTAPIResourceErr). The names are from etcd paths, not resources of the API.
//
// CRDs, APIServices and, since Kubernetes 1.26, custom resources are encrypted.
func storedBare(gr schema.GroupResource) bool {
	return gr.Group == "" && slices.Contains([]string{
		"masterleases",     // k8s.io/kubernetes pkg/controlplane/instance.go
		"peerserverleases", // pkg/controlplane/apiserver/peer.go
		"ranges",           // IPs and node ports: pkg/registry/core/rest/storage_core.go
		"",                 // compact_rev_key: k8s.io/apiserver pkg/storage/etcd3/compact.go
	}, gr.Resource)
}

// storageResource returns the resource by which the server chooses a transformer. The result
// differs from gr if two groups serve one dir in etcd: k8s.io/kubernetes
// pkg/kubeapiserver/default_storage_factory_builder.go, AddCohabitatingResources. Without this
// mapping, a rule for "events" would miss events.k8s.io.
func storageResource(gr schema.GroupResource) schema.GroupResource {
	group := gr.Group
	switch gr.String() {
	case "events.events.k8s.io", "replicationcontrollers.extensions":
		group = ""
	case "deployments.extensions", "daemonsets.extensions", "replicasets.extensions":
		group = "apps"
	case "networkpolicies.extensions", "ingresses.extensions":
		group = "networking.k8s.io"
	case "podsecuritypolicies.extensions":
		group = "policy"
	}
	return schema.GroupResource{Group: group, Resource: gr.Resource}
}
