package rehearse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/apiservers"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// try has clients list and write the objects.
func (r *rehearsal) try(ctx context.Context) (string, error) {
	all, err := inspect.Survey(ctx, r.reader)
	if err != nil {
		return "", err
	}
	misplaced, err := r.addRecords(ctx, all)
	if err != nil {
		return "", err
	}
	result, err := tryAll(ctx, r.server.Config, tryOptions{
		Sample: r.Sample, Native: r.APIServer != "", StandIn: apiservers.NotChecked, Names: storedNames(r.cluster.Client(), r.storage.Prefix),
		Misplaced: misplaced,
	})
	if err != nil {
		if err = r.explain(err); errors.As(err, new(*sandbox.Died)) {
			return "", codeServer.Because("%s", err)
		}
		return "", err
	}
	for _, f := range result.Failures {
		found := f.At(r.keyOf(f))
		found.Reason = strings.TrimPrefix(found.Reason, subject(f.Resource, f.objectName)+": ") // the key says it
		r.Found.Add(found)
	}
	for code, n := range result.Counts {
		r.Found.Counts[code] = n
	}
	r.addUnserved(all, result.Kinds)
	objects, lists, tried := 0, 0, 0
	for _, k := range result.Kinds {
		k.Listed = append([]string{}, k.Listed...) // a list in JSON
		r.Kinds = append(r.Kinds, k.Kind)
		objects, lists, tried = objects+k.Objects, lists+len(k.Listed), tried+k.Tried
	}
	return fmt.Sprintf("%d objects of %d kinds listed at %d versions, writes of %d tried", objects, len(result.Kinds), lists, tried), nil
}

// addRecords adds what no list shows: values of orphans that cannot be decoded, which no server
// lists, and objects under keys of other names, which it returns. An API server finds an object by
// its key, and shows it under its own name.
func (r *rehearsal) addRecords(ctx context.Context, all *inspect.Catalogue) (map[misplacedObject]bool, error) {
	found, orphans := map[misplacedObject]bool{}, map[string]bool{}
	for _, of := range all.Resources {
		orphans[of.Resource] = orphans[of.Resource] || of.Orphans && of.Prefix == r.storage.Prefix
	}
	return found, r.reader.Snapshot().Guard(func() error {
		return stream.Each(r.reader.Live(ctx, []byte(r.storage.Prefix+"/")), func(e *inspect.Entry) error {
			key, err := e.ParseKey()
			if err != nil || e.Undecryptable != nil {
				return nil
			}
			if err := e.Check(); err != nil && orphans[key.Resource.String()] {
				r.Found.Add(finding.Undecodable.Because("%v", err).At(string(e.Key)))
			}
			meta, err := encoding.ReadMeta(e.Value)
			if err != nil {
				return nil // lists say it
			}
			if why := inspect.Misplaced(key, meta.Name, meta.Namespace); why != "" {
				r.Found.Add(codeMisplaced.Because("%s", why).At(string(e.Key)))
				name := objectName{meta.Namespace, meta.Name}
				found[misplacedObject{Resource: key.Resource.String(), Name: name, ResourceVersion: strconv.FormatInt(e.ModRevision, 10)}] = true
			}
			return nil
		})
	})
}

// addUnserved tells of records that the API server does not serve.
func (r *rehearsal) addUnserved(all *inspect.Catalogue, kinds []*kind) {
	for _, s := range all.Prefixes {
		if s.Prefix != r.storage.Prefix {
			r.notChecked("keys below "+s.Prefix, "the API server reads those below "+r.storage.Prefix)
		}
	}
	for _, of := range all.Resources {
		served := slices.ContainsFunc(kinds, func(k *kind) bool { return k.Resource == of.Resource })
		if of.Prefix == r.storage.Prefix && !served && (of.Orphans || r.APIServer != "") {
			r.notChecked(of.Resource, fmt.Sprintf("the API server does not serve the kind; %d are stored", of.Objects))
		}
	}
	if all.Other > 0 {
		r.notChecked("keys of no kind", fmt.Sprintf("no API server reads them; %d are stored", all.Other))
	}
}

// keyOf is the key in etcd of what a request was about; of a whole kind, its folder.
func (r *rehearsal) keyOf(f refused) string {
	gr, layout := schema.ParseGroupResource(f.Resource), keys.Kubernetes{Prefix: r.storage.Prefix}
	if f.Name == "" {
		return string(layout.Dir(gr))
	}
	return string(layout.Format(keys.Key{Prefix: r.storage.Prefix, Resource: gr, Namespace: f.Namespace, Name: f.Name}))
}
