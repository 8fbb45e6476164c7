package encryption

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/etcdshift/etcdshift/encoding"
)

// Decrypt gives the plain value of what is stored under the complete etcd key for an object of gr: stored itself where it
// is not encrypted, also where the configuration lacks the identity provider without which a server could not read it.
//
// stale says that a server's next write of the object would store it otherwise: with another key or provider, in the
// clear, or under another key of the KMS plugin.
//
// err wraps encoding.ErrEncrypted for a value that no key opens, and says by which provider and key it was encrypted and
// why it stays closed. Any other error says nothing of the value: ctx ended, or a KMS plugin that answered when Load
// asked does not answer any more.
func (t *Transformers) Decrypt(
	ctx context.Context, gr schema.GroupResource, key, stored []byte,
) (plain []byte, stale bool, err error) {
	by, encrypted := Describe(stored)
	if !encrypted {
		return stored, t.Encrypts(gr), nil
	}
	if by.Name == kms && by.Version == "v1" {
		return nil, false, encoding.Encrypted(stored)
	}
	gr = storageResource(gr)
	tried, why := t.candidates(gr, by, stored)
	if why != "" {
		return nil, false, closed(by, why)
	}
	if len(key) == 0 {
		return nil, false, errors.New("opening a value: no etcd key given")
	}
	library, done, err := t.use(ctx)
	if err != nil {
		return nil, false, err
	}
	defer done()
	plain, stale, err = library.TransformerForResource(gr).TransformFromStorage(ctx, stored, bound(key))
	if err == nil && tried.Name == aescbc && !isObject(plain) {
		err = errors.New("no object")
	}
	switch {
	case err == nil:
		return plain, stale, nil
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case tried.Name == kms && unanswered(err):
		return nil, false, fmt.Errorf("opening a value of %s: the KMS plugin does not answer (%s)", tried, status.Code(err))
	default:
		return nil, false, closed(tried, unopened(tried))
	}
}

// unopened says why a provider and key that the configuration has did not open a value. The library's own words are of
// no use: "cipher: message authentication failed", "output array was not large enough for encryption".
func unopened(by Provider) string {
	who, moved := "the key does not open it: another key of that name, or the value is damaged", ""
	if by.Name == kms {
		who = "the KMS plugin does not open it: its key is gone, or the value is damaged"
	}
	if by.Name == kms || by.Name == aesgcm {
		moved = " or was copied from another etcd key"
	}
	return who + moved
}

// Encrypt gives what a server would store under the complete etcd key for the plain value of an object of gr: encrypted by
// the provider that the configuration names first for gr, or plain itself where that is identity, where nothing is
// configured for gr, and for records that no server encrypts. A plain value that is encrypted already is refused with an
// error that wraps encoding.ErrEncrypted; it must be opened under the key it came from.
func (t *Transformers) Encrypt(ctx context.Context, gr schema.GroupResource, key, plain []byte) (stored []byte, err error) {
	if by, encrypted := Describe(plain); encrypted {
		return nil, closed(by, "it can't be sealed again")
	}
	if !t.Encrypts(gr) {
		return plain, nil
	}
	if len(key) == 0 {
		return nil, errors.New("sealing a value: no etcd key given")
	}
	gr = storageResource(gr)
	library, done, err := t.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	stored, err = library.TransformerForResource(gr).TransformToStorage(ctx, plain, bound(key))
	if err != nil {
		return nil, fmt.Errorf("sealing a value of %s by %s: %w", gr, t.config.providers(gr)[0], err)
	}
	return stored, nil
}

// Encrypts says whether Encrypt encrypts values of gr.
func (t *Transformers) Encrypts(gr schema.GroupResource) bool {
	if t == nil || storedBare(gr) {
		return false
	}
	providers := t.config.providers(storageResource(gr))
	return len(providers) > 0 && providers[0].Name != identity
}

// candidates returns the provider and key whose name the value begins with, or why there is none to try. Only then the
// library is asked: it can't tell the reasons apart, and aescbc panics on a value that ends after its first block
// (k8s.io/apiserver v0.37.2 pkg/storage/value/encrypt/aes/aes.go, cbc.TransformFromStorage).
func (t *Transformers) candidates(gr schema.GroupResource, by Provider, stored []byte) (p Provider, why string) {
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
	found, sameProvider := false, false
	for _, candidate := range providers {
		sameProvider = sameProvider || candidate.Name == by.Name && candidate.Version == by.Version
		if candidate.Name == identity || !bytes.HasPrefix(stored, []byte(candidate.prefix())) {
			continue
		}
		if n := len(stored) - len(candidate.prefix()); n < shortest(candidate.Name) {
			return candidate, fmt.Sprintf("it is cut off: %d bytes after the key's name, and no value has so few", n)
		}
		p, found = candidate, true
	}
	switch {
	case found:
		return p, ""
	case by.Version == "":
		return by, "it is cut off or damaged within the provider's name"
	case !sameProvider:
		return by, fmt.Sprintf("the configuration has no provider %s:%s for %s", by.Name, by.Version, gr)
	case by.Key == "":
		return by, "it is cut off or damaged within the key's name"
	case by.Name == kms:
		return by, fmt.Sprintf("the configuration has no KMS provider of that name for %s", gr)
	default:
		return by, fmt.Sprintf("the configuration has no key of that name for %s", gr)
	}
}

// shortest is the length that the ciphertext of an empty value has: nonce or IV, and tag or padding.
func shortest(provider string) int {
	switch provider {
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

// isObject says whether a value opened by aescbc can be what an API server stored. aescbc has no tag: a wrong key opens
// one value in 256 to noise, as does a cut at the end of a block, and the server notices when it decodes that.
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

// bound is the context that ciphertext is bound to. The key is copied: the KMS v2 transformer keeps its memory, and not
// its bytes, as a cache's key for ten minutes (pkg/storage/value/encrypt/aes/cache.go), and the caller's may be a buffer
// that is used again, or a mapped page that is gone by then.
func bound(key []byte) value.Context { return value.DefaultContext(bytes.Clone(key)) }

// unanswered tells a plugin that is gone from one that refuses.
func unanswered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	default:
		return false
	}
}

func closed(by Provider, why string) error {
	return fmt.Errorf("%w by %s: %s", encoding.ErrEncrypted, by, why)
}
