package storageversion

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// The snapshots of these tests are the snapshot of an etcd with added records, each at its own
// revision.

const (
	definitions = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
	widgetsCRD  = "widgets.example.com"
	widgetsKey  = definitions + widgetsCRD
	widgetsDir  = "/registry/example.com/widgets/"
)

// definition is a CustomResourceDefinition.
type definition struct {
	name       string // widgets.example.com when empty
	kind       string // Widget when empty
	versions   string // in order: "v1alpha1- v1beta1 v1*"; * is the storage version, - is not served
	schemas    map[string]string
	stored     string // as JSON; the storage version when empty, missing for "-"
	webhook    bool
	cluster    bool   // scope
	meta, spec string // more members: `"labels":{"a":"b"},`
	status     string
}

const (
	// plainSchema is the schema of versions without a given schema.
	plainSchema = `{"type":"object","properties":{"spec":{"type":"object","properties":{"text":{"type":"string"},` +
		`"size":{"type":"integer"},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}`
	uidOf = "0f9edba4-4ce1-43f1-b890-%012x"
)

func (d definition) names() (name, plural, group, kind string) {
	name, kind = d.name, d.kind
	if name == "" {
		name = widgetsCRD
	}
	plural, group, _ = strings.Cut(name, ".")
	if kind == "" {
		kind = strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	}
	return name, plural, group, kind
}

func (d definition) key() string {
	name, _, _, _ := d.names()
	return definitions + name
}

func (d definition) json(t testing.TB) string {
	t.Helper()
	name, plural, group, kind := d.names()
	scope, conversion, stored, storage := "Namespaced", `{"strategy":"None"}`, d.stored, ""
	if d.cluster {
		scope = "Cluster"
	}
	if d.webhook {
		conversion =
			`{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://127.0.0.1:1/convert"},` +
				`"conversionReviewVersions":["v1"]}}`
	}
	var versions []string
	for _, word := range strings.Fields(d.versions) {
		version := strings.TrimRight(word, "*-")
		schema := d.schemas[version]
		if schema == "" {
			schema = plainSchema
		}
		if strings.Contains(word, "*") {
			storage = version
		}
		versions = append(versions, fmt.Sprintf(`{"name":%q,"served":%t,"storage":%t,"schema":{"openAPIV3Schema":%s}}`,
			version, !strings.Contains(word, "-"), storage == version, schema))
	}
	switch stored {
	case "":
		stored = fmt.Sprintf(`,"storedVersions":[%q]`, storage)
	case "-":
		stored = ""
	default:
		stored = `,"storedVersions":` + stored
	}
	named := fmt.Sprintf(`{"plural":%q,"singular":%q,"kind":%q,"listKind":%q}`, plural, strings.ToLower(kind),
		kind, kind+"List")
	status := d.status
	if status == "" {
		status = `"acceptedNames":` + named
	}
	uid := fmt.Sprintf(`"uid":"`+uidOf+`",`, len(name))
	if strings.Contains(d.meta, `"uid"`) {
		uid = ""
	}
	out := fmt.Sprintf(
		`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{%s%s"name":%q,`+
			`"generation":2,"creationTimestamp":"2026-01-01T00:00:00Z"},`+
			`"spec":{"group":%q,%s"names":%s,"scope":%q,"versions":[%s],"conversion":%s},"status":{%s%s}}`+"\n",
		uid, d.meta, name, group, d.spec, named, scope, strings.Join(versions, ","), conversion, status, stored)
	require.True(t, json.Valid([]byte(out)), out)
	return out
}

// resource is a custom resource, as a server stores it.
type resource struct {
	crd             string // widgets.example.com when empty
	version         string
	namespace, name string // "ns" when empty; "-" for none
	meta            string // more members of metadata, sorted before creationTimestamp: `"annotations":{...},`
	late            string // members sorted after generation: `"managedFields":[...],`
	spec            string // {"text":"x"} when empty
}

func (o resource) path() (dir, group, kind, namespace string) {
	_, plural, group, kind := definition{name: o.crd}.names()
	if namespace = o.namespace; namespace == "" {
		namespace = "ns"
	}
	dir = "/registry/" + group + "/" + plural + "/"
	if namespace == "-" {
		return dir, group, kind, ""
	}
	return dir + namespace + "/", group, kind, namespace
}

func (o resource) key() string {
	dir, _, _, _ := o.path()
	return dir + o.name
}

func (o resource) json(t testing.TB) string {
	t.Helper()
	_, group, kind, namespace := o.path()
	if namespace != "" {
		namespace = fmt.Sprintf(`"namespace":%q,`, namespace)
	}
	spec := o.spec
	if spec == "" {
		spec = `{"text":"x"}`
	}
	out := fmt.Sprintf(
		`{"apiVersion":"%s/%s","kind":%q,"metadata":{%s"creationTimestamp":"2026-01-01T00:00:00Z","generation":3,`+
			`%s"name":%q,%s"uid":"u-%s"},"spec":%s}`+"\n",
		group, o.version, kind, o.meta, o.late, o.name, namespace, o.name, spec)
	require.True(t, json.Valid([]byte(out)), out)
	return out
}

// at returns the object stored at another version, without other changes.
func (o resource) at(version string) resource {
	o.version = version
	return o
}

// cluster is a snapshot under construction.
type cluster struct {
	t       testing.TB
	changes []snapshot.Change
}

func newCluster(t testing.TB, definitions ...definition) *cluster {
	c := &cluster{t: t}
	for _, d := range definitions {
		c.put(d.key(), d.json(t))
	}
	return c
}

func (c *cluster) put(key, value string) *cluster { return c.leased(key, value, 0) }

func (c *cluster) leased(key, value string, lease int64) *cluster {
	c.changes = append(c.changes, snapshot.Change{Key: []byte(key), Value: []byte(value), Lease: lease})
	return c
}

func (c *cluster) add(objects ...resource) *cluster {
	for _, o := range objects {
		c.put(o.key(), o.json(c.t))
	}
	return c
}

// native puts a built-in object as kube-apiserver stores it: in protobuf.
func (c *cluster) native(key, apiVersion, kind string, obj runtime.ProtobufMarshaller) *cluster {
	return c.put(key, protobufOf(c.t, apiVersion, kind, obj, 0))
}

// fresh is the snapshot of an etcd with a single record, built once.
var fresh struct {
	sync.Once
	image []byte
}

// build writes the snapshot and returns its path.
func (c *cluster) build() (path string) {
	c.t.Helper()
	fresh.Do(func() {
		image, err := os.ReadFile(etcdtest.Build(c.t, "put compact_rev_key 1\n"))
		require.NoError(c.t, err)
		fresh.image = image
	})
	dir := c.t.TempDir()
	from, path := filepath.Join(dir, "fresh.db"), filepath.Join(dir, "input.db")
	require.NoError(c.t, os.WriteFile(from, fresh.image, 0o600))
	src, err := snapshot.Open(context.Background(), from, snapshot.Config{})
	require.NoError(c.t, err)
	defer src.Close()
	_, err = snapshot.Write(context.Background(), path, src, func(yield func(snapshot.Change, error) bool) {
		for _, change := range c.changes {
			if !yield(change, nil) {
				return
			}
		}
	}, snapshot.WriteConfig{})
	require.NoError(c.t, err)
	return path
}

// migrate builds the snapshot and runs the migration on it.
func (c *cluster) migrate(o Options, allow ...string) result {
	c.t.Helper()
	return migrate(c.t, transform.Options{In: c.build(), Allow: allow}, o)
}

// stored is a record of a snapshot.
type stored struct {
	value string
	lease int64
	mod   int64
}

// result is the result of a run.
type result struct {
	*transform.Report
	*Definitions
	t       testing.TB
	path    string // of the output
	err     error
	in, out map[string]stored // out is nil when nothing was written
}

// migrate runs a migration, not a dry run, and checks the properties of every run.
func migrate(t testing.TB, files transform.Options, o Options) result {
	t.Helper()
	return migrateContext(context.Background(), t, files, o)
}

func migrateContext(ctx context.Context, t testing.TB, files transform.Options, o Options) result {
	t.Helper()
	files.Out = filepath.Join(t.TempDir(), "output.db")
	report, err := transform.Run(ctx, files, New(o))
	r := result{Report: report, Definitions: transformtest.Section[Definitions](report), t: t, path: files.Out,
		err: err, in: contents(t, files.In)}
	if err == nil && !files.DryRun {
		r.out = contents(t, files.Out)
	} else {
		require.NoFileExists(t, files.Out)
	}
	r.addsUp()
	return r
}

func contents(t testing.TB, path string) map[string]stored {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	got := map[string]stored{}
	for rec, err := range s.Live(context.Background(), nil) {
		require.NoError(t, err)
		got[string(rec.Key)] = stored{string(rec.Value), rec.Lease, rec.ModRevision}
	}
	return got
}
