package apiservers

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/conversion"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/serve"
	"github.com/etcdshift/etcdshift/keys"
)

// pageSize limits the records in memory; a CRD may have a megabyte.
const pageSize = 50

// Isolation lists the records that Isolate changed or could not read, in key order.
type Isolation struct {
	Webhooks   []Webhook    // conversion webhooks of CRDs replaced by the relay
	Aggregated []string     // names of removed APIServices with a service
	Unreadable []Unreadable // CRDs and APIServices
}

// Webhook is the conversion webhook of a CRD.
type Webhook struct {
	CRD   string
	Asked bool // a converter answers; otherwise NotChecked
}

// Unreadable is a CRD or an APIService that could not be read or edited.
type Unreadable struct {
	Key     string
	Reason  error
	Removed bool // from the store, because an API server might dial its webhook
}

// errForeign is the reason to remove a record.
var errForeign = errors.New("not stored as an API server stores it")

// Isolate edits CRDs and APIServices in the store so that an API server connects only to the relay.
// The store must be a temporary copy.
func Isolate(
	ctx context.Context, store *clientv3.Client, prefix string, t *encryption.Transformers, r *Relay,
) (Isolation, error) {
	i := isolator{store: store, layout: keys.Kubernetes{Prefix: prefix}, transformers: t, relay: r}
	if err := i.each(ctx, keys.DefinitionType(), i.redirect); err != nil {
		return i.done, err
	}
	err := i.each(ctx, gvr.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}, i.cut)
	return i.done, err
}

type isolator struct {
	store        *clientv3.Client
	layout       keys.Kubernetes
	transformers *encryption.Transformers
	relay        *Relay
	done         Isolation
}

// editor returns the new content of an object, or nil to remove the object.
type editor func(name string, content []byte) ([]byte, error)

// each edits all objects of a resource, page by page.
func (i *isolator) each(ctx context.Context, gr gvr.GroupResource, edit editor) error {
	dir := string(i.layout.Dir(gr))
	for from := dir; ; {
		page, err := i.store.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(dir)),
			clientv3.WithLimit(pageSize))
		if err != nil {
			return fmt.Errorf("reading %s from etcd: %w", gr, err)
		}
		for _, kv := range page.Kvs {
			if err := i.change(ctx, gr, kv.Key, kv.Value, edit); err != nil {
				return fmt.Errorf("%s: %w", kv.Key, err)
			}
			from = string(kv.Key) + "\x00"
		}
		if !page.More {
			return nil
		}
	}
}

// change edits one record. An undecryptable or undecodable value stays unchanged.
func (i *isolator) change(ctx context.Context, gr gvr.GroupResource, key, stored []byte, edit editor) error {
	content, edited, err := i.edit(ctx, gr, key, stored, edit)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		foreign := errors.Is(err, errForeign)
		i.done.Unreadable = append(i.done.Unreadable, Unreadable{string(key), err, foreign})
		if !foreign {
			return nil
		}
		fallthrough
	case edited == nil:
		_, err = i.store.Delete(ctx, string(key))
		return err
	case string(edited) == string(content):
		return nil
	}
	if edited, err = i.transformers.Encrypt(ctx, gr, key, edited); err != nil {
		return err
	}
	_, err = i.store.Put(ctx, string(key), string(edited))
	return err
}

// edit returns the plaintext of a record before and after the edit.
func (i *isolator) edit(
	ctx context.Context, gr gvr.GroupResource, key, stored []byte, edit editor,
) (content, edited []byte, err error) {
	content, _, err = i.transformers.Decrypt(ctx, gr, key, stored)
	switch {
	case err != nil:
		return nil, nil, err
	case encoding.Detect(content) != encoding.FormatJSON:
		return nil, nil, errForeign
	}
	edited, err = edit(path.Base(string(key)), content)
	return content, edited, err
}

// definition has the fields of a stored CRD with addresses that an API server dials.
type definition struct {
	APIVersion string `json:"apiVersion"`
	Spec       struct {
		Group      string `json:"group"`
		Conversion struct {
			Strategy string       `json:"strategy"`
			Config   clientConfig `json:"webhookClientConfig"` // v1beta1
			Webhook  struct {
				Config clientConfig `json:"clientConfig"`
			} `json:"webhook"` // v1
		} `json:"conversion"`
	} `json:"spec"`
}

type clientConfig struct {
	URL     string    `json:"url"`
	Service *struct{} `json:"service"`
}

// redirect makes the relay the conversion webhook of a CRD. The result is decoded as by an API
// server: of a repeated field, parts of both values count.
func (i *isolator) redirect(name string, content []byte) ([]byte, error) {
	var crd definition
	if err := kjson.UnmarshalCaseSensitivePreserveInts(content, &crd); err != nil ||
		crd.Spec.Conversion.Strategy != "Webhook" {
		return content, err
	}
	url, asked := i.relay.webhook(crd.Spec.Group, content)
	field, used := []string{"spec", "conversion", "webhook", "clientConfig"}, &crd.Spec.Conversion.Webhook.Config
	if crd.APIVersion == "apiextensions.k8s.io/v1beta1" {
		field, used = []string{"spec", "conversion", "webhookClientConfig"}, &crd.Spec.Conversion.Config
	}
	config := map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString(i.relay.Certificate)}
	edited, err := encoding.Set(content, config, field...)
	if err != nil {
		return nil, err
	}
	*used = clientConfig{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(edited, &crd); err != nil || *used != (clientConfig{URL: url}) {
		return nil, fmt.Errorf("%w: its conversion webhook cannot be replaced", errForeign)
	}
	i.done.Webhooks = append(i.done.Webhooks, Webhook{name, asked})
	return edited, nil
}

// cut removes an APIService with a service that an API server would dial.
func (i *isolator) cut(name string, content []byte) ([]byte, error) {
	var s struct {
		Spec struct {
			Service *struct{} `json:"service"`
		} `json:"spec"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(content, &s); err != nil || s.Spec.Service == nil {
		return content, err
	}
	i.done.Aggregated = append(i.done.Aggregated, name)
	return nil, nil
}

// ServiceRange returns the --service-cluster-ip-range of the servers that wrote a store, or "" if
// unknown. A kube-apiserver refuses Services of an IP family without a range.
func ServiceRange(ctx context.Context, store *clientv3.Client, prefix string, t *encryption.Transformers) string {
	read := func(gr gvr.GroupResource, name string, field ...string) []string {
		key := keys.Kubernetes{Prefix: prefix}.Format(keys.Key{Prefix: prefix, Resource: gr, Name: name})
		got, err := store.Get(ctx, string(key))
		if err != nil || len(got.Kvs) == 0 {
			return nil
		}
		plain, _, err := t.Decrypt(ctx, gr, key, got.Kvs[0].Value)
		if err != nil {
			return nil
		}
		object, err := native.Decode(plain)
		if err != nil {
			return nil
		}
		if one, ok, _ := unstructured.NestedString(object, field...); ok && one != "" {
			return []string{one}
		}
		many, _, _ := unstructured.NestedStringSlice(object, field...)
		return many
	}
	ranges := read(gvr.GroupResource{Group: "networking.k8s.io", Resource: "servicecidrs"}, "kubernetes",
		"spec", "cidrs")
	if len(ranges) == 0 { // before Kubernetes 1.33
		allocations := gvr.GroupResource{Resource: "ranges"}
		ranges = append(read(allocations, "serviceips", "range"), read(allocations, "secondaryserviceips", "range")...)
	}
	return strings.Join(ranges, ",")
}

// NotChecked begins the answer of an API server whose conversion webhook was not called: the object
// is unchecked.
const NotChecked = "not checked: "

// Relay replaces the conversion webhooks of CRDs at a loopback address. It calls the given
// converters, and otherwise answers NotChecked. Only the edited CRDs have its URLs.
type Relay struct {
	converters map[string]*conversion.Converter // by group
	mux        *http.ServeMux
	webhooks   int
	address    string
	*serve.Credentials
}

// NewRelay starts a relay that ends with ctx. The converters, by group, may be nil.
func NewRelay(ctx context.Context, converters map[string]*conversion.Converter) (*Relay, error) {
	credentials, err := serve.NewCredentials("")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("conversion webhooks: %w", err)
	}
	r := &Relay{converters: converters, mux: http.NewServeMux(), address: l.Addr().String(), Credentials: credentials}
	server := &http.Server{Handler: r.mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(credentials.Listener(l)) }() // ended by Close
	return r, nil
}

// webhook creates a webhook for a CRD, stored as value, and returns its URL; asked reports whether
// a converter answers. It never fails, because the API server would dial a URL left in the CRD.
func (r *Relay) webhook(group string, value []byte) (url string, asked bool) {
	handler, err := r.handler(group, value)
	if err != nil {
		handler = refuse(err.Error())
	}
	r.webhooks++
	path := fmt.Sprintf("/%s/%d", r.Token, r.webhooks)
	r.mux.Handle(path, handler)
	return "https://" + r.address + path, err == nil
}

// handler returns the handler of the group's converter for the CRD.
func (r *Relay) handler(group string, value []byte) (http.Handler, error) {
	converter := r.converters[group]
	if converter == nil {
		return nil, errors.New("the conversion webhook was not asked")
	}
	crd, err := schema.ParseCRD(value)
	if err != nil {
		return nil, err
	}
	return converter.Handler(crd.Object())
}

// refuse returns a handler that answers NotChecked.
func refuse(reason string) http.Handler {
	handler, _ := conversion.Refuse(NotChecked + reason).Handler(nil) // fails for no CRD
	return handler
}
