package apiservers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/conversion"
	"github.com/etcdshift/etcdshift/internal/serve"
)

// NotChecked begins the answer of an API server whose conversion webhook was not asked: it says
// nothing about the object.
const NotChecked = "not checked: "

// Relay stands where the conversion webhooks of CRDs are, at a loopback address: it asks the
// converters that were given, and otherwise answers NotChecked. Only the edited CRDs know its URLs.
type Relay struct {
	converters map[string]*conversion.Converter // by group
	mux        *http.ServeMux
	webhooks   int
	address    string
	*serve.Credentials
}

// NewRelay starts a relay, which ends with ctx. The converters, by group, may be nil.
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
	go func() { _ = server.Serve(credentials.Listener(l)) }() // ends by Close
	return r, nil
}

// webhook makes a webhook for a CRD, stored as value, and returns its URL, and whether a converter
// is behind it. It never fails: a URL that stays in the CRD would be dialled.
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

// handler is the converter of the group, for the CRD.
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

// refuse answers that nothing is checked.
func refuse(reason string) http.Handler {
	handler, _ := conversion.Refuse(NotChecked + reason).Handler(nil) // fails for no CRD
	return handler
}
