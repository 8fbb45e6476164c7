package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	fleetSize     = 200
	fleetVariants = 20              // number of different snapshots
	fleetTimeout  = 8 * time.Minute // on a busy machine; a quarter of it on an idle one
)

// fleet is a bucket of snapshots, a few of them bad, with the program's output for each alone.
type fleet struct {
	*gateway
	list    string
	names   []string          // by index
	bad     map[int]string    // outcome of each failing index
	made    map[string][]byte // output by content of the snapshot
	content [][]byte          // by index
}

// TestFleet checks that an indexed Job of deploy/ migrates a fleet in a bucket although Pods are
// killed. Each index is done once or reported with a reason, with the same bytes as a single run,
// and a second run of the Job changes nothing.
func TestFleet(t *testing.T) {
	f := newFleet(t)
	c := startCluster(t, filepath.Join(t.TempDir(), "empty"))
	start(t, "kube-controller-manager", append(c.collectorFlags(t), "--controllers=job-controller",
		"--kube-api-qps=500", "--kube-api-burst=1000")...)
	text, ok := c.kubectl(t).run(t, "create", "namespace", "etcdshift")
	require.True(t, ok, text)
	kills := 0
	k := startKubelet(t, c, "etcdshift", func(pod *corev1.Pod) time.Duration {
		index, tries := indexOf(t, pod)
		random := rand.New(rand.NewPCG(uint64(index), uint64(tries)))
		if tries > 1 || random.IntN(4) > 0 {
			return 0
		}
		return 1 + time.Duration(random.Int64N(int64(time.Second)))
	})
	f.requireJob(t, c, k, "-calico-v3")
	retried := 0
	for i := range fleetSize {
		ended := k.ended[strconv.Itoa(i)]
		require.NotEmpty(t, ended, "index %d", i)
		for _, status := range ended[:len(ended)-1] {
			require.Equal(t, 137, status, "index %d", i)
			kills++
		}
		if len(ended) > 1 {
			retried++
		}
		require.Equal(t, map[bool]int{true: 3}[f.bad[i] != ""], ended[len(ended)-1], "index %d: %s", i,
			k.logs[strconv.Itoa(i)])
	}
	t.Logf("%d kills of %d indexes", kills, retried)
	require.Greater(t, kills, 10)
	f.requireResults(t)
	before := f.files(t)

	k.reset()
	k.kill = func(*corev1.Pod) time.Duration { return 0 }
	f.requireJob(t, c, k, "-again")
	for i := range fleetSize {
		require.Equal(t, []int{map[bool]int{true: 3}[f.bad[i] != ""]}, k.ended[strconv.Itoa(i)], "index %d", i)
	}
	require.Equal(t, before, f.files(t), "nothing is made twice, nothing overwritten")
}

// indexOf returns the index of a Pod, and the number of failed Pods of the index.
func indexOf(t testing.TB, pod *corev1.Pod) (index, failures int) {
	index, err := strconv.Atoi(pod.Labels[batchv1.JobCompletionIndexAnnotation])
	require.NoError(t, err)
	failures, err = strconv.Atoi(pod.Annotations[batchv1.JobIndexFailureCountAnnotation])
	require.NoError(t, err)
	return index, failures
}

// newFleet fills a bucket and writes its list.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{gateway: startGateway(t), list: "s3://plain/fleets/calico-v3.json", bad: map[int]string{},
		made: map[string][]byte{}}
	dir := t.TempDir()
	for _, path := range []string{filepath.Dir(dir), filepath.Dir(f.ca)} { // readable for the user of the Pods
		require.NoError(t, os.Chmod(path, 0o755))
	}
	require.NoError(t, os.Chmod(f.ca, 0o644))
	var good [][]byte
	for i := range fleetVariants {
		path := filepath.Join(dir, fmt.Sprintf("%d.db", i))
		run(t, "patch", snapshotOf(t, "before"), path, "namespace/default", "--type", "merge", "-p",
			fmt.Sprintf(`{"metadata":{"labels":{"cluster":"c%d"}}}`, i))
		run(t, "migrate", "calico-v3", path, path+".out")
		content, made := readFile(t, path), readFile(t, path+".out")
		if i%2 == 0 {
			content = zipped(t, content)
		}
		good, f.made[string(content)] = append(good, content), made
	}
	old := filepath.Join(dir, "old.db")
	run(t, "patch", snapshotOf(t, "before"), old, "clusterinformations.crd.projectcalico.org/default", "--type",
		"merge", "-p", `{"spec":{"calicoVersion":"v3.30.2"}}`)
	refused := readFile(t, old)
	for i := range fleetSize {
		content := good[i%fleetVariants]
		switch i % 25 {
		case 3:
			content, f.bad[i] = content[:len(content)/2], "failed"
		case 11:
			content, f.bad[i] = refused, "refused"
		case 19:
			content, f.bad[i] = []byte("no snapshot"), "failed"
		}
		f.content = append(f.content, content)
		f.names = append(f.names, fmt.Sprintf("c%03d/snapshot.db", i))
		f.do(t, "PUT", "/plain/etcd/"+f.names[i], "", content)
	}
	said := f.succeed(t, "fleet", "list", "s3://plain/etcd/", f.list, "--name", "calico-v3")
	require.Contains(t, said, fmt.Sprintf("\ncompletions: %d\n", fleetSize))
	return f
}

// files returns the files of the bucket with their content.
func (f *fleet) files(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	bucket := filepath.Join(f.root, "plain", "etcd")
	paths, err := filepath.Glob(filepath.Join(bucket, "*", "*"))
	require.NoError(t, err)
	for _, path := range paths {
		name, err := filepath.Rel(bucket, path)
		require.NoError(t, err)
		all[name] = string(readFile(t, path))
	}
	return all
}

// requireJob applies the files of deploy/, adapted as a user adapts them, and requires that the bad
// indexes of the Job fail and all others complete.
func (f *fleet) requireJob(t testing.TB, c *cluster, k *kubelet, suffix string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "deploy"))))
	path := filepath.Join(dir, "fleet-example", "kustomization.yaml")
	changed := string(readFile(t, path))
	for old, now := range map[string]string{
		"nameSuffix: -calico-v3":                  "nameSuffix: " + suffix,
		"LIST=s3://backups/fleets/calico-v3.json": "LIST=" + f.list,
		"path: /spec/completions, value: 200}":    fmt.Sprintf("path: /spec/completions, value: %d}", fleetSize),
		"path: /spec/parallelism, value: 4}":      "path: /spec/parallelism, value: 8}",
	} {
		require.Contains(t, changed, old)
		changed = strings.Replace(changed, old, now, 1)
	}
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
	env := fmt.Sprintf(
		"AWS_ENDPOINT_URL=https://127.0.0.1:%s\nAWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\nAWS_CA_BUNDLE=%s\n",
		f.port, s3ID, s3Secret, f.ca)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "s3.env"), []byte(env), 0o600))
	text, ok := c.kubectl(t).run(t, "apply", "-k", filepath.Dir(path))
	require.True(t, ok, text)
	var job *batchv1.Job
	eventually(t, fleetTimeout, "the Job ends", func() (err error) {
		k.requireExpected(t)
		if job, err = k.BatchV1().Jobs("etcdshift").Get(context.Background(), "fleet"+suffix,
			metav1.GetOptions{}); err != nil {
			return err
		}
		if !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
		}) {
			return fmt.Errorf("%d active, %d succeeded, %d failed", job.Status.Active, job.Status.Succeeded,
				job.Status.Failed)
		}
		return nil
	})
	var bad []int
	for i := range fleetSize {
		if f.bad[i] != "" {
			bad = append(bad, i)
		}
	}
	require.Equal(t, bad, indexes(t, *job.Status.FailedIndexes))
	require.Len(t, indexes(t, job.Status.CompletedIndexes), fleetSize-len(bad))
}

// indexes parses indexes as listed by a Job, such as "0-2,4".
func indexes(t testing.TB, text string) (all []int) {
	t.Helper()
	for part := range strings.SplitSeq(text, ",") {
		first, last, several := strings.Cut(part, "-")
		if !several {
			last = first
		}
		from, err := strconv.Atoi(first)
		require.NoError(t, err)
		to, err := strconv.Atoi(last)
		require.NoError(t, err)
		for i := from; i <= to; i++ {
			all = append(all, i)
		}
	}
	return all
}

// requireResults compares the bucket with the results of single runs, and the summary with the
// bucket.
func (f *fleet) requireResults(t *testing.T) {
	t.Helper()
	left := f.files(t)
	for i, name := range f.names {
		require.Equal(t, string(f.content[i]), left[name], "snapshots stay")
		delete(left, name)
		if f.bad[i] == "" {
			require.True(t, string(f.made[string(f.content[i])]) == left[name+".fleet-calico-v3.db"],
				"%s: another output than alone", name)
			delete(left, name+".fleet-calico-v3.db")
		}
		require.Contains(t, left, name+".fleet-calico-v3.json")
		delete(left, name+".fleet-calico-v3.json")
	}
	for name := range left {
		require.Fail(t, "left over: "+name)
	}
	cmd := f.command(t, "fleet", "summary", f.list, "-o", "json")
	text, err := cmd.Output()
	require.Error(t, err)
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	var summary struct {
		Snapshots []struct{ Path, Outcome, Error string }
		Totals    map[string]int
	}
	require.NoError(t, json.Unmarshal(text, &summary))
	require.Len(t, summary.Snapshots, fleetSize)
	for i, s := range summary.Snapshots {
		require.True(t, strings.HasSuffix(s.Path, "/"+f.names[i]))
		if f.bad[i] == "" {
			require.Equal(t, "written", s.Outcome, s.Error)
			continue
		}
		require.Equal(t, f.bad[i], s.Outcome, s.Path)
		require.Equal(t, f.bad[i] == "failed", s.Error != "")
	}
	require.Equal(t, fleetSize-len(f.bad), summary.Totals["written"])
}

// run runs a successful command of the program, and returns its output.
func run(t testing.TB, args ...string) string {
	t.Helper()
	said, err := exec.Command(etcdshift(t), args...).CombinedOutput()
	require.NoError(t, err, "%s", said)
	return string(said)
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return text
}

func zipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(content)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.Bytes()
}
