package graft

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// importing runs a command line with flags.
func importing(t testing.TB, in, from, line string, allow ...string) (*transform.Report, string, error) {
	t.Helper()
	ctx := context.Background()
	args := transformtest.Args(strings.Fields(line)...)
	if prefix := args.String("prefix"); prefix != "" {
		args.Prefixes = []string{prefix}
	}
	args.Arguments = []string{from}
	args.Open = transformtest.Files(t, args.Prefixes...)
	change, err := Spec.New(ctx, args)
	if err != nil {
		return nil, "", err
	}
	out := filepath.Join(t.TempDir(), "out.db")
	r, err := transform.Run(ctx,
		transform.Options{Command: "import", In: in, Out: out, Allow: allow, Prefixes: args.Prefixes}, change)
	return r, out, err
}

// planFunc is a transform for test inputs.
type planFunc func(ctx context.Context, v *transform.View) error

func (f planFunc) Plan(ctx context.Context, v *transform.View) error { return f(ctx, v) }

// split writes the records of a snapshot for which taken is true, and the others, as two snapshots.
func split(t testing.TB, in string, taken func(key string) bool) (part, rest string) {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	part, rest = filepath.Join(dir, "part.db"), filepath.Join(dir, "rest.db")
	run := func(out string, plan planFunc) {
		_, err := transform.Run(ctx, transform.Options{In: in, Out: out}, plan)
		require.NoError(t, err)
	}
	run(part, func(ctx context.Context, v *transform.View) error {
		v.Make(transform.Output{Anew: true})
		src := v.Reader().Snapshot()
		granted, err := src.Leases(ctx)
		if err != nil {
			return err
		}
		info, err := src.Info(ctx)
		if err != nil {
			return err
		}
		content := &snapshot.Content{Revision: info.Revision, Hold: true}
		for _, id := range slices.Sorted(maps.Keys(granted)) {
			content.Leases = append(content.Leases, snapshot.Lease{ID: id, TTL: granted[id]})
		}
		content.Records = stream.Of(func(yield func(*snapshot.Record) error) error {
			return stream.Each(src.Live(ctx, nil), func(rec *snapshot.Record) error {
				if !taken(string(rec.Key)) {
					return nil
				}
				return yield(rec)
			})
		})
		v.Make(transform.Output{Build: content})
		return nil
	})
	run(rest, func(ctx context.Context, v *transform.View) error {
		return stream.Each(v.Live(ctx, nil), func(e *transform.Entry) error {
			if !taken(string(e.Key)) {
				return nil
			}
			return v.Delete(ctx, e.Key)
		})
	})
	return part, rest
}

// stored is a live record without its revisions.
type stored struct {
	Value string
	TTL   int64
}

func live(t testing.TB, path string) map[string]stored {
	t.Helper()
	ctx := context.Background()
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	leases, err := s.Leases(ctx)
	require.NoError(t, err)
	all := map[string]stored{}
	for rec, err := range s.Live(ctx, nil) {
		require.NoError(t, err)
		if len(rec.Key) > 0 {
			all[string(rec.Key)] = stored{string(rec.Value), leases[rec.Lease]}
		}
	}
	return all
}

// object returns a script line that writes an object with the UID u-NAME; more is JSON.
func object(apiVersion, kind, dir, namespace, name, metadata, more string) string {
	in, at := "", dir+"/"+name
	if namespace != "" {
		in, at = fmt.Sprintf(`,"namespace":%q`, namespace), dir+"/"+namespace+"/"+name
	}
	value := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"uid":"u-%s"%s%s}%s}`, apiVersion, kind, name,
		name, in, metadata, more)
	if !json.Valid([]byte(value)) {
		panic(value)
	}
	return "put /registry/" + at + " " + strconv.Quote(value)
}

func core(kind, dir, namespace, name, more string) string {
	return object("v1", kind, dir, namespace, name, "", more)
}

func build(t testing.TB, lines ...string) string { return etcdtest.Build(t, strings.Join(lines, "\n")) }

func svc(name, ip string, port int) string {
	return core("Service", "services/specs", "a", name, fmt.Sprintf(
		`,"spec":{"type":"NodePort","clusterIP":%q,"clusterIPs":[%q],"ports":[{"port":80,"nodePort":%d}]}`, ip, ip, port))
}

func ranges(name, of string, data []byte) string {
	text, _ := json.Marshal(data)
	return "put /registry/ranges/" + name + " " + strconv.Quote(fmt.Sprintf(
		`{"apiVersion":"v1","kind":"RangeAllocation","metadata":{},"range":%q,"data":%s}`, of, text))
}

func address(ip, resource, namespace, name string) string {
	return object("networking.k8s.io/v1", "IPAddress", "ipaddresses", "", ip,
		`,"labels":{"ipaddress.kubernetes.io/ip-family":"IPv4"}`, fmt.Sprintf(
			`,"spec":{"parentRef":{"group":"","resource":%q,"namespace":%q,"name":%q}}`, resource, namespace, name))
}

func cidr(of string) string {
	return object("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs", "", "kubernetes", "",
		fmt.Sprintf(`,"spec":{"cidrs":[%q]}`, of))
}

func claim(name, volume string) string {
	return core("PersistentVolumeClaim", "persistentvolumeclaims", "a", name, fmt.Sprintf(`,"spec":{"volumeName":%q}`, volume))
}

func volume(name, policy, ref string) string {
	return core("PersistentVolume", "persistentvolumes", "", name,
		fmt.Sprintf(`,"spec":{"persistentVolumeReclaimPolicy":%q,"claimRef":%s}`, policy, ref))
}

func widgets(versions ...string) string {
	var all []string
	for i, version := range versions {
		all = append(all, fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object"}}}`,
			version, i == 0))
	}
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition",
		"apiextensions.k8s.io/customresourcedefinitions", "", "widgets.example.com", "", fmt.Sprintf(`,"spec":{"group":"example.com","scope":"Namespaced",`+
			`"names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"versions":[%s]},`+
			`"status":{"storedVersions":[%q]}`, strings.Join(all, ","), versions[0]))
}

func widget(version string) string {
	return object("example.com/"+version, "Widget", "example.com/widgets", "a", "w", "", "")
}

func owned(name, kind, owner string) string {
	return object("v1", "ConfigMap", "configmaps", "a", name,
		fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"v1","kind":%q,"name":%q,"uid":"u-%s"}]`, kind, owner, owner), "")
}

// problems returns the problems of a report without not-an-archive.
func problems(r *transform.Report) (all []string) {
	for _, p := range r.Problems {
		if p.Code != codeNotArchive {
			all = append(all, fmt.Sprintf("%s %s %s", p.Level, p.Code.Name, strings.TrimPrefix(p.Key, "/registry/")))
		}
	}
	slices.Sort(all)
	return all
}

// TestAllocates checks that the allocators have the addresses of the Services: the bits that a live
// server has set, and an IPAddress that differs only in its UID and time.
func TestAllocates(t *testing.T) {
	path := filepath.Join("..", "..", "testdata", "kubectl", "all.db.gz")
	before := live(t, path)
	of := func(key string) bool {
		return strings.HasPrefix(key, "/registry/services/specs/a/") ||
			strings.HasPrefix(key, "/registry/ipaddresses/") && key != "/registry/ipaddresses/10.96.0.1"
	}
	_, rest := split(t, path, of)
	part, _ := split(t, path, func(key string) bool { return of(key) && !strings.Contains(key, "ipaddresses") })
	empty := filepath.Join(t.TempDir(), "empty.db") // as if no Service had a node port
	const ports = "/registry/ranges/servicenodeports"
	_, err := transform.Run(context.Background(), transform.Options{In: rest, Out: empty},
		planFunc(func(ctx context.Context, v *transform.View) error {
			e, err := v.Get(ctx, []byte(ports))
			require.NoError(t, err)
			a, err := readAllocator(e)
			require.NoError(t, err)
			a.bits.SetInt64(0)
			value, err := a.value()
			require.NoError(t, err)
			return v.Put(ctx, []byte(ports), value)
		}))
	require.NoError(t, err)
	require.NotEqual(t, before[ports], live(t, empty)[ports])
	r, out, err := importing(t, empty, part, "", "not-an-archive")
	require.NoError(t, err, "%v", r.Problems)
	after := live(t, out)
	require.Equal(t, before[ports], after[ports])
	require.Equal(t, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	for key := range before {
		if strings.HasPrefix(key, "/registry/ipaddresses/") {
			require.Equal(t, len(before[key].Value), len(after[key].Value), key)
			require.Equal(t, spec(before[key].Value), spec(after[key].Value), key)
		}
	}
	require.Len(t, transformtest.Section[Imported](r).Import.Addresses, 4)
}

// spec returns the end of an IPAddress, with its spec.
func spec(value string) string { return value[strings.LastIndex(value, "services"):] }

// TestStoredVersions checks that a version of an imported object is added to storedVersions.
func TestStoredVersions(t *testing.T) {
	in := build(t, core("Namespace", "namespaces", "", "a", ""), widgets("v1", "v1beta1"))
	r, out, err := importing(t, in, build(t, widget("v1beta1")), "", "not-an-archive")
	require.NoError(t, err, "%v", r.Problems)
	const definition = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"
	require.Contains(t, live(t, out)[definition].Value, `"storedVersions":["v1","v1beta1"]`)
}

// TestPrefix checks that records move below another storage prefix, and that those below no prefix
// are named.
func TestPrefix(t *testing.T) {
	part := build(t, strings.ReplaceAll(core("Namespace", "namespaces", "", "a", ""), "/registry/", "/tenant-a/"),
		strings.ReplaceAll(core("Secret", "secrets", "a", "s", ""), "/registry/", "/tenant-a/"),
		core("Secret", "secrets", "a", "other", ""))
	in := build(t, core("Namespace", "namespaces", "", "b", ""))
	r, out, err := importing(t, in, part, "--prefix=/tenant-a --to-prefix=/registry", "not-an-archive")
	require.NoError(t, err, "%v", r.Problems)
	require.Equal(t, []string{"warning unknown-key secrets/a/other"}, problems(r))
	got := live(t, out)
	require.Equal(t, []string{"/registry/namespaces/a", "/registry/namespaces/b", "/registry/secrets/a/s"},
		slices.Sorted(maps.Keys(got)))
	require.Equal(t, live(t, part)["/tenant-a/secrets/a/s"], got["/registry/secrets/a/s"])

	r, out, err = importing(t, in, part, "--prefix=/tenant-a --to-prefix=/tenants/x/", "not-an-archive")
	require.NoError(t, err)
	require.Contains(t, live(t, out), "/tenants/x/secrets/a/s")
	require.Equal(t, []string{"warning prefix-new /tenants/x/", "warning unknown-key secrets/a/other"}, problems(r))
	for line, want := range map[string]string{
		"--prefix=/other --to-prefix=/registry": "no key lies below the storage prefix \"/other\"",
		"--to-prefix=/x":                        "requires one --prefix",
		"--prefix=/a --to-prefix=/":             "--to-prefix is empty",
	} {
		_, _, err := importing(t, in, part, line)
		require.ErrorContains(t, err, want)
	}
}

// TestOddKeys checks that keys of no resource come with the others, byte for byte.
func TestOddKeys(t *testing.T) {
	part := build(t, core("Namespace", "namespaces", "", "a", ""), "put /registry/foo bar", "put x y")
	r, out, err := importing(t, build(t, core("Namespace", "namespaces", "", "b", "")), part, "", "not-an-archive")
	require.NoError(t, err, "%v", r.Problems)
	require.Subset(t, live(t, out), live(t, part))
}

// TestLeases checks that records keep the TTL of their leases, and that no record of the input gets
// one of them.
func TestLeases(t *testing.T) {
	part := build(t, "grant 100 3600", `put /registry/events/a/e "{\"apiVersion\":\"v1\",\"kind\":\"Event\"}" lease=100`)
	in := build(t, core("Namespace", "namespaces", "", "a", ""), "grant 100 60", "put /x y lease=100")
	r, out, err := importing(t, in, part, "", finding.Allowable(codes())...)
	require.NoError(t, err, "%v", r.Problems)
	require.Equal(t, int64(3600), live(t, out)["/registry/events/a/e"].TTL)
	require.Equal(t, int64(60), live(t, out)["/x"].TTL)
}

// TestEncryption checks that values are decrypted as the archive's origin encrypted them, and
// encrypted as the API servers of the input do; and that no value becomes plaintext.
func TestEncryption(t *testing.T) {
	const key = "/registry/secrets/a/s"
	plain := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"a","uid":"u-s"}}`
	theirs, ours := secrettest.Load(t, "secrets: secretbox=t"), secrettest.Load(t, "secrets: aesgcm=o")
	from := build(t, "put "+key+" "+strconv.Quote(secrettest.Encrypt(t, theirs, "secrets", key, plain)))
	in := build(t, core("Namespace", "namespaces", "", "a", ""), core("Secret", "secrets", "a", "x", ""))
	run := func(
		archiveWith inspect.Decrypter, with transform.Encrypter, allow ...string,
	) (*transform.Report, string, error) {
		s, err := snapshot.Open(context.Background(), from, snapshot.Config{})
		require.NoError(t, err)
		defer s.Close()
		g := &Graft{Archive: &transform.File{Reader: inspect.NewReader(s, archiveWith), Decrypter: archiveWith}}
		out := filepath.Join(t.TempDir(), "out.db")
		r, err := transform.Run(context.Background(), transform.Options{In: in, Out: out, Encryption: with,
			Allow: append(allow, "not-an-archive")}, g)
		return r, out, err
	}
	r, out, err := run(theirs, ours)
	require.NoError(t, err, "%v", r.Problems)
	stored := live(t, out)[key].Value
	require.True(t, strings.HasPrefix(stored, "k8s:enc:aesgcm:v1:o"), "%.40q", stored)
	got, _, err := ours.Decrypt(context.Background(), schema.GroupResource{Resource: "secrets"}, []byte(key),
		[]byte(stored))
	require.NoError(t, err)
	require.Equal(t, plain, string(got))

	_, out, err = run(theirs, theirs)
	require.NoError(t, err)
	require.Equal(t, live(t, from)[key], live(t, out)[key], "the stored bytes stay")

	r, out, err = run(theirs, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"warning would-be-plaintext secrets/a/s"}, problems(r), "as all Secrets of B")
	require.Equal(t, plain, live(t, out)[key].Value)
	in = build(t, core("Namespace", "namespaces", "", "a", ""))
	r, _, err = run(theirs, nil)
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, []string{"error would-be-plaintext secrets/a/s"}, problems(r))
	_, out, err = run(theirs, nil, "would-be-plaintext")
	require.NoError(t, err)
	require.Equal(t, plain, live(t, out)[key].Value)
	const other = "/registry/secrets/a/x"
	in = build(t, core("Namespace", "namespaces", "", "a", ""),
		"put "+other+" "+strconv.Quote(secrettest.Encrypt(t, ours, "secrets", other, plain)))
	r, _, err = run(theirs, nil, "would-be-plaintext")
	require.ErrorIs(t, err, transform.ErrRefused, "perhaps no server of B reads plaintext")
	require.Contains(t, problems(r), "error would-be-plaintext secrets/a/s")
	in = build(t, core("Namespace", "namespaces", "", "a", ""))
	r, _, err = run(nil, nil)
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Contains(t, problems(r), "error encrypted secrets/a/s")
	_, out, err = run(nil, nil, "encrypted")
	require.NoError(t, err)
	require.Equal(t, live(t, from)[key], live(t, out)[key])
}
