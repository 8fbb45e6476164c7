package remove

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// run1 runs a command line, and returns its report and output.
func run1(t testing.TB, in, line string, allow ...string) (*transform.Report, string) {
	t.Helper()
	made, err := Spec.New(context.Background(), transformtest.Args(strings.Fields(line)...))
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "out.db")
	r, err := transform.Run(context.Background(), transform.Options{In: in, Out: out, Allow: allow}, made)
	if r.Outcome != transform.Refused {
		require.NoError(t, err)
	}
	return r, out
}

// problems returns the problems of a report as "code key".
func problems(r *transform.Report) (all []string) {
	for _, p := range r.Problems {
		all = append(all, strings.TrimSpace(p.Code.Name+" "+p.Key))
	}
	slices.Sort(all)
	return all
}

// keysOf returns the keys of a snapshot.
func keysOf(t testing.TB, path string) (all []string) {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for e, err := range inspect.NewReader(s, nil).Live(context.Background(), nil) {
		require.NoError(t, err)
		all = append(all, strings.TrimPrefix(string(e.Key), "/registry/"))
	}
	slices.Sort(all)
	return all
}

// put returns a script line that writes an object with the UID u-NAME.
func put(kind, dir, namespace, name, metadata string) string {
	apiVersion := "v1"
	if strings.HasPrefix(dir, "demo.example.com") {
		apiVersion = "demo.example.com/v1"
	}
	in, at := "", dir+"/"+name
	if namespace != "" {
		in, at = fmt.Sprintf(`,"namespace":%q`, namespace), dir+"/"+namespace+"/"+name
	}
	value := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"uid":"u-%s"%s%s}}`, apiVersion, kind, name,
		name, in, metadata)
	return "put /registry/" + at + " " + strconv.Quote(value)
}

// configMap returns a ConfigMap in namespace a, with owners "Kind/name".
func configMap(name, more string, owners ...string) string {
	var refs []string
	for _, owner := range owners {
		kind, of, _ := strings.Cut(owner, "/")
		apiVersion := "v1"
		if kind == "Widget" || kind == "Gone" {
			apiVersion = "demo.example.com/v1"
		}
		refs = append(refs, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":"u-%s"}`, apiVersion, kind, of, of))
	}
	return put("ConfigMap", "configmaps", "a", name, more+`,"ownerReferences":[`+strings.Join(refs, ",")+`]`)
}

const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
	`"metadata":{"name":"widgets.demo.example.com","uid":"u-crd"},` +
	`"spec":{"group":"demo.example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget",` +
	`"kind":"Widget","listKind":"WidgetList"},` +
	`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",` +
	`"x-kubernetes-preserve-unknown-fields":true}}}]}}`

// family returns a snapshot of objects with owners.
func family(t testing.TB) string {
	t.Helper()
	return etcdtest.Build(t, strings.Join([]string{
		"put /registry/apiextensions.k8s.io/customresourcedefinitions/widgets.demo.example.com " +
			strconv.Quote(definition),
		put("Namespace", "namespaces", "", "a", ""),
		put("Namespace", "namespaces", "", "b", ""),
		put("Namespace", "namespaces", "", "kube-system", ""),
		put("Secret", "secrets", "a", "root", ""),
		put("Secret", "secrets", "a", "other", ""),
		put("Secret", "secrets", "b", "root", ""),
		put("Widget", "demo.example.com/widgets", "a", "w", ""),
		configMap("child", "", "Secret/root"),
		configMap("grandchild", "", "ConfigMap/child"),
		configMap("both", "", "Secret/root", "Secret/other"),
		configMap("twice", "", "ConfigMap/child", "Secret/root"),
		configMap("held", `,"finalizers":["x.y/z"]`, "Secret/root"),
		configMap("of-held", "", "ConfigMap/held"),
		configMap("foreground", `,"finalizers":["foregroundDeletion"]`, "Secret/root"),
		configMap("orphaning", `,"finalizers":["orphan"]`, "Secret/root"),
		configMap("orphaned", "", "ConfigMap/orphaning"),
		configMap("leaving", `,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x.y/z"]`, "Secret/root"),
		configMap("unserved", "", "Secret/root", "Gone/g"),
		configMap("of-widget", "", "Widget/w"),
		put("PersistentVolume", "persistentvolumes", "", "pv",
			`,"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"root","uid":"u-root"}]`),
		"put /registry/configmaps/a/encrypted k8s:enc:aescbc:v1:key1:abc",
		"put /registry/secrets/a/bad hello",
	}, "\n"))
}

func collected(r *transform.Report) (all []string) {
	for _, c := range transformtest.Section[Deletion](r).Deletion.Collected {
		all = append(all, strings.TrimPrefix(c.Key, "/registry/")+" "+string(c.Does)+" "+strings.Join(c.Owners, ","))
	}
	return all
}
