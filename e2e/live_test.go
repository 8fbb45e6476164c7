package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	chunk        = 500 // objects in a page of kube-storage-version-migrator
	ticks        = 100 // of a second of CPU time in /proc
	migrateLimit = 30 * time.Minute
)

// cost is the wall clock, the CPU time of the client and of its servers, and the requests.
type cost struct{ wall, client, servers, requests float64 }

// liveBench measures commands on a file beside live servers with the same content.
type liveBench struct {
	testing.TB
	in   string
	runs int // live migrations run once
}

// TestLive prints the table of "make bench-live" for the snapshot in BENCH_LIVE and the snapshots
// with Calico's records in BENCH_LIVE_CALICO, with medians of BENCH_RUNS runs.
func TestLive(t *testing.T) {
	b := liveBench{TB: t, in: os.Getenv("BENCH_LIVE")}
	if b.in == "" && os.Getenv("BENCH_LIVE_CALICO") == "" {
		t.Skip("BENCH_LIVE is not set: see make bench-live")
	}
	var err error
	b.runs, err = strconv.Atoi(os.Getenv("BENCH_RUNS"))
	require.NoError(t, err)
	fmt.Fprint(t.Output(), "| work | s | requests | CPU s: client | CPU s: servers |\n|---|---|---|---|---|\n")
	if b.in != "" {
		b.reads()
		b.migrations()
	}
	for in := range strings.FieldsSeq(os.Getenv("BENCH_LIVE_CALICO")) {
		b.calico(in)
	}
}

func (b liveBench) print(work string, costs ...cost) {
	slices.SortFunc(costs, func(a, b cost) int { return int(1000 * (a.wall - b.wall)) })
	c := costs[len(costs)/2]
	fmt.Fprintf(b.Output(), "| %s | %.2f | %.0f | %.2f | %.2f |\n", work, c.wall, c.requests, c.client, c.servers)
}

// reads lists Pods with kubectl on live servers, and from the file.
func (b liveBench) reads() {
	begin := time.Now()
	c := startCluster(b, restoreAsIs(b, b.in))
	b.print("restore, start etcd and kube-apiserver", cost{wall: time.Since(begin).Seconds(), servers: c.cpu(b)})
	c.idle(b)
	live := c.kubectl(b)
	live.flags = append(live.flags, "--cache-dir="+live.home)
	_, ok := live.run(b, "get", "pods") // a warm-up
	require.True(b, ok)
	for _, output := range []string{"", " -o name", " -o json"} {
		list := strings.Fields("get pods -A" + output)
		runs := make([][]cost, 3)
		for range b.runs {
			runs[0] = append(runs[0], c.during(b, `resource="pods"`, func() float64 {
				return b.command(live.program, slices.Concat(live.flags, list)).client
			}))
			runs[1] = append(runs[1], b.command(etcdshift(b), append([]string{"get", b.in}, list[1:]...)))
			runs[2] = append(runs[2], b.command(etcdshift(b), append([]string{"kubectl", b.in}, list...)))
		}
		for i, name := range []string{"kubectl get", "etcdshift get", "etcdshift kubectl get"} {
			b.print(name+" pods -A"+output, runs[i]...)
		}
	}
	c.stop()
}

// migrations store all custom resources at the storage version: live in two ways, and in the file.
func (b liveBench) migrations() {
	for _, way := range []struct {
		name string
		run  func(c *cluster, types []schema.GroupVersionResource) (run func() float64, stop func())
	}{
		{"the calls of kube-storage-version-migrator", b.pages},
		{"kube-controller-manager's StorageVersionMigrator", b.controller},
	} {
		c := startCluster(b, restoreAsIs(b, b.in), "--feature-gates=StorageVersionMigrator=true",
			"--runtime-config=storagemigration.k8s.io/v1beta1=true")
		types := c.mixed(b)
		require.NotZero(b, c.stale(b, types), "nothing to migrate")
		run, stop := way.run(c, types)
		c.idle(b)
		took := c.during(b, `group="`+types[0].Group+`"`, run)
		stop()
		require.Zero(b, c.stale(b, types))
		c.stop()
		b.print(way.name, took)
	}
	var ours, restores []cost
	for range b.runs {
		out := filepath.Join(b.TempDir(), "out.db")
		ours = append(ours, b.command(etcdshift(b), []string{"migrate", "storage-versions", b.in, out}))
		data := filepath.Join(b.TempDir(), "etcd")
		restores = append(restores,
			b.command(tool(b, "etcdutl"), []string{"snapshot", "restore", out, "--data-dir", data}))
		require.NoError(b, os.Remove(out))
		require.NoError(b, os.RemoveAll(data))
	}
	b.print("etcdshift migrate storage-versions", ours...)
	b.print("etcdutl snapshot restore of its output", restores...)
}

// command measures a program and discards its output.
func (b liveBench) command(program string, args []string) cost {
	cmd := exec.Command(program, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	begin := time.Now()
	require.NoError(b, cmd.Run(), "%s: %s", cmd, &said)
	wall := time.Since(begin)
	return cost{wall: wall.Seconds(), client: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
}

// during measures a run, which returns the CPU time of its client, and counts its requests.
func (c *cluster) during(t testing.TB, labels string, run func() float64) cost {
	t.Helper()
	requests, servers, begin := c.requests(t, labels), c.cpu(t), time.Now()
	client := run()
	wall := time.Since(begin)
	return cost{wall.Seconds(), client, c.cpu(t) - servers, c.requests(t, labels) - requests}
}

// idle waits until the servers have filled their caches.
func (c *cluster) idle(t testing.TB) {
	t.Helper()
	used := c.cpu(t)
	eventually(t, startTimeout, "idle servers", func() error {
		time.Sleep(quiet)
		before := used
		if used = c.cpu(t); used-before > 0.5 {
			return fmt.Errorf("%.1f CPU s in %s", used-before, quiet)
		}
		return nil
	})
}

// cpu returns the CPU time of both servers, in seconds.
func (c *cluster) cpu(t testing.TB) float64 { return c.process.cpu(t) + c.store.process.cpu(t) }

// cpu returns the CPU time of a program, in seconds.
func (p *process) cpu(t testing.TB) float64 {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, err := strconv.ParseFloat(fields[11], 64)
	require.NoError(t, err)
	system, err := strconv.ParseFloat(fields[12], 64)
	require.NoError(t, err)
	return (user + system) / ticks
}

// requests returns the number of answered requests with labels.
func (c *cluster) requests(t testing.TB, labels string) (n float64) {
	t.Helper()
	text, err := c.discovery.RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	require.NoError(t, err)
	count := regexp.MustCompile(`(?m)^apiserver_request_total\{.*` + labels + `.*\} (\S+)$`)
	for _, match := range count.FindAllSubmatch(text, -1) {
		value, err := strconv.ParseFloat(string(match[1]), 64)
		require.NoError(t, err)
		n += value
	}
	return n
}

// mixed returns the custom types with several stored versions, at their storage versions.
func (c *cluster) mixed(t testing.TB) (types []schema.GroupVersionResource) {
	t.Helper()
	list, err := c.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, crd := range list.Items {
		stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
		if len(stored) < 2 {
			continue
		}
		plural, group, _ := strings.Cut(crd.GetName(), ".")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			if v := v.(map[string]any); v["storage"] == true {
				types = append(types, schema.GroupVersionResource{Group: group, Version: v["name"].(string),
					Resource: plural})
			}
		}
	}
	require.NotEmpty(t, types)
	return types
}

// stale returns the number of values in etcd that are not at the storage version.
func (c *cluster) stale(t testing.TB, types []schema.GroupVersionResource) (n int) {
	t.Helper()
	for _, r := range types {
		all, err := c.store.Get(context.Background(), "/registry/"+r.Group+"/"+r.Resource+"/", clientv3.WithPrefix())
		require.NoError(t, err)
		for _, kv := range all.Kvs {
			if !bytes.HasPrefix(kv.Value, []byte(`{"apiVersion":"`+r.GroupVersion().String()+`"`)) {
				n++
			}
		}
	}
	return n
}

// pages makes the calls of kube-storage-version-migrator, whose module no proxy serves: it lists in
// pages and updates each object as listed, one at a time. The program's limit of requests
// is left out.
func (b liveBench) pages(c *cluster, types []schema.GroupVersionResource) (run func() float64, stop func()) {
	return func() float64 {
		ctx, before := context.Background(), ownCPU(b)
		for _, r := range types {
			options := metav1.ListOptions{Limit: chunk}
			for {
				list, err := c.objects.Resource(r).List(ctx, options)
				require.NoError(b, err)
				for _, o := range list.Items {
					_, err := c.client(r, o.GetNamespace()).Update(ctx, &o, metav1.UpdateOptions{})
					require.NoError(b, err)
				}
				if options.Continue = list.GetContinue(); options.Continue == "" {
					break
				}
			}
		}
		return ownCPU(b) - before
	}, func() {}
}

func ownCPU(t testing.TB) float64 {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// controller runs the controller with its default limits. It reads the caches of the garbage
// collector, which collects nothing here: the objects of the file have owners outside of it.
func (b liveBench) controller(c *cluster, types []schema.GroupVersionResource) (run func() float64, stop func()) {
	p := start(b, "kube-controller-manager", append(c.collectorFlags(b), "--concurrent-gc-syncs=0",
		"--controllers=storage-version-migrator-controller", "--feature-gates=StorageVersionMigrator=true")...)
	eventually(b, migrateLimit, "caches", func() error {
		if !strings.Contains(string(p.output(b)), "all resource monitors") { // synced, or not within 30 seconds
			return fmt.Errorf("not synced:\n%s", p.tail(b))
		}
		return nil
	})
	migrations := c.objects.Resource(schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1beta1",
		Resource: "storageversionmigrations"})
	return func() float64 {
		before := p.cpu(b)
		for _, r := range types {
			_, err := migrations.Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "storagemigration.k8s.io/v1beta1", "kind": "StorageVersionMigration",
				"metadata": map[string]any{"name": r.Resource + "." + r.Group},
				"spec":     map[string]any{"resource": map[string]any{"group": r.Group, "resource": r.Resource}},
			}}, metav1.CreateOptions{})
			require.NoError(b, err)
		}
		eventually(b, migrateLimit, "migrations", func() error {
			list, err := migrations.List(context.Background(), metav1.ListOptions{})
			require.NoError(b, err)
			for _, m := range list.Items {
				conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
				text := fmt.Sprint(conditions)
				require.NotContains(b, text, "type:Failed", "%s", p.tail(b))
				if !strings.Contains(text, "type:Succeeded") {
					return fmt.Errorf("%s: %s\n%s", m.GetName(), text, p.tail(b))
				}
			}
			return nil
		})
		return p.cpu(b) - before
	}, p.stop
}
