package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubectl is the real program for one server, or the kubectl linked into etcdshift.
type kubectl struct {
	program string
	flags   []string
	home    string
}

// kubectl returns kubectl for the live server.
func (c *cluster) kubectl(t testing.TB) kubectl {
	return kubectl{tool(t, "kubectl"), []string{
		"--server=" + c.config.Host, "--token=" + c.config.BearerToken,
		"--certificate-authority=" + c.config.TLSClientConfig.CAFile,
	}, t.TempDir()}
}

// serve runs "etcdshift serve" on a file until the test ends.
func serve(t testing.TB, path string, flags ...string) kubectl {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	cmd := exec.Command(etcdshift(t), append([]string{"serve", path, "--kubeconfig", kubeconfig}, flags...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		require.NoFileExists(t, kubeconfig)
	})
	eventually(t, startTimeout, "kubeconfig", func() error {
		_, err := os.Stat(kubeconfig)
		return err
	})
	return kubectl{tool(t, "kubectl"), []string{"--kubeconfig=" + kubeconfig}, t.TempDir()}
}

// linked returns "etcdshift kubectl" for a file.
func linked(t testing.TB, path string, flags ...string) kubectl {
	return kubectl{etcdshift(t), slices.Concat([]string{"kubectl", "-q"}, flags, []string{path}), t.TempDir()}
}

// etcdshift returns the path of the tested program.
func etcdshift(t testing.TB) string {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("..", "bin", "etcdshift"))
	require.NoError(t, err)
	return program
}

// run runs a command. It returns the output, including errors, and whether the command succeeded.
func (k kubectl) run(t testing.TB, args ...string) (text string, ok bool) {
	t.Helper()
	cmd := exec.Command(k.program, append(slices.Clone(k.flags), args...)...)
	cmd.Env = []string{"HOME=" + k.home, "PATH=" + os.Getenv("PATH")} // of diff
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return string(out), err == nil
}

// config returns the client-go configuration for the server.
func (k kubectl) config(t testing.TB) *rest.Config {
	t.Helper()
	_, path, _ := strings.Cut(k.flags[0], "--kubeconfig=")
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	return config
}

// everyKind returns a restored cluster with objects of each built-in kind, and a file saved from
// the cluster with the API server's startup objects and a helm release.
func everyKind(t testing.TB) (live *cluster, saved string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "all.db")
	unzip(t, filepath.Join("..", "testdata", "kubectl", "all.db.gz"), path)
	c := startCluster(t, restoreAsIs(t, path, "--skip-hash-check"))
	for _, line := range []string{
		"create secret generic sh.helm.release.v1.web.v1 -n a --type=helm.sh/release.v1 --from-literal=release=made-up",
		"label secret sh.helm.release.v1.web.v1 -n a owner=helm",
	} {
		text, ok := c.kubectl(t).run(t, strings.Fields(line)...)
		require.True(t, ok, text)
	}
	c.store.waitQuiet(t)
	return c, c.store.save(t)
}

var (
	// ages grow, and so do times of events
	durations = regexp.MustCompile(`\b(?:[0-9]+[smhdy])+\b`)
	blanks    = regexp.MustCompile(` +`)
)

func comparable(text string) []string {
	text = blanks.ReplaceAllString(durations.ReplaceAllString(text, "AGE"), " ")
	return strings.Split(text, "\n")
}

// justified reports whether a difference between a kube-apiserver of 1.36 and a snapshot served
// with the types of 1.37 is expected, by parts of the command and the line.
func justified(command, line string) bool {
	for _, newer := range []string{"clustertrustbundles", "podcertificaterequests", "devicetaintrules",
		"storageversionmigrations", "storagemigration.k8s.io/v1"} {
		if strings.Contains(command+line, newer) { // stable since 1.37
			return true
		}
	}
	for about, texts := range map[string][]string{
		// renewed by the running server
		"leases": {"renewTime: ", "resourceVersion: ", "Renew Time: ", "Resource Version: "},
		// defaults added by a server on read
		"persistentvolumeclaims": {"phase: Pending", "status: {}", "Status: "},
		"jobs.batch":             {"a j2 Running", "Labels: "},
		// a field of 1.37
		"csinodes": {"status: {}"},
		// kubectl prints a selector in Go syntax, and an age without a column
		"validatingadmissionpolicybindings": {"vab2 vap "},
		"ipaddresses":                       {" services/"},
		// requests that a snapshot does not answer, and versions that it lacks
		"api-resources": {"bindings v1", "componentstatuses", "tokenreviews", "subjectaccessreviews"},
		"api-versions":  {"autoscaling/v1"},
		// without --as the answer concerns the reader
		"auth can-i": {"Warning: this is what the reader"},
		// this program has no definition of the type
		"explain apiservices": {""},
	} {
		for _, text := range texts {
			if strings.Contains(command, about) && strings.Contains(line, text) {
				return true
			}
		}
	}
	// required fields and enum values exist only in generated code; texts change
	field := regexp.MustCompile(`^(live|served): +[a-zA-Z]+\t<`)
	newer := regexp.MustCompile(
		`served: .* (mode\t<string|bindMountOptions\t|evictionResponders\t|status\t<CSINodeStatus|(user|defaultUser)\t<integer)`)
	return strings.HasPrefix(command, "explain") && (!field.MatchString(line) || newer.MatchString(line))
}

// different returns the lines found in only one of two texts.
func different(live, served string) (out []string) {
	live, served = strings.ReplaceAll(live, " -required-", ""), strings.ReplaceAll(served, " -required-", "")
	a, b := comparable(live), comparable(served)
	for _, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, "live:   "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			out = append(out, "served: "+line)
		}
	}
	return out
}

// reading returns read-only command lines, with some for each type.
func reading(types string) (commands [][]string) {
	for _, kind := range strings.Fields(types) {
		commands = append(commands, []string{"get", kind, "-A"},
			[]string{"get", kind, "-A", "-o", "wide", "--show-labels"},
			[]string{"get", kind, "-A", "-o", "yaml"}, []string{"describe", kind, "-A"}, []string{"explain", kind})
	}
	for _, line := range []string{
		"get all -A", "get pods -A --chunk-size=2", "get pods -A -l app", "get pods -n a -l app!=web",
		"get pods -A --field-selector status.phase=Running",
		"get pods -A --sort-by .metadata.name -o name", "get pod run -n a -o json", "get pod none -n a", "get nothing",
		"get deploy,rs,svc -n a", "api-resources",
		"explain pod.spec.containers", "explain deployment --recursive", "auth can-i get pods",
		"get events -n a", "api-versions",
		"get pods -A -o jsonpath={.items[*].metadata.name}",
		"get pods -A -o custom-columns=N:.metadata.name,P:.status.phase", "get pods,nodes,secrets -A -o name",
		"get secrets -A -l owner=helm -o yaml", "get secrets -A --field-selector type=helm.sh/release.v1",
		"get pods -A --field-selector spec.nodeName!=n1",
		"get events -A --field-selector involvedObject.kind=Pod", "get nodes --field-selector spec.unschedulable=false",
		"get pods -A -l app=,x", "get pods --field-selector a=b",
		"wait --for=jsonpath={.metadata.name}=run pod/run -n a", "wait --for=delete pod/none -n a",
		"wait --for=condition=Nothing pod/run -n a --timeout=1s",
		"events -n a", "get pods -A --show-managed-fields -o json", "explain nothing", "explain pods.nothing",
		"describe pod none -n a", "rollout status deploy/d1 -n a --watch=false",
		"rollout history deploy -n a", "auth can-i watch secrets -A",
	} {
		commands = append(commands, strings.Fields(line))
	}
	return commands
}

// TestServed checks that clients see the same from a snapshot and from the API server that wrote
// it.
func TestServed(t *testing.T) {
	t.Parallel()
	live, path := everyKind(t)
	served := serve(t, path, "--show-secrets")
	t.Run("informers", func(t *testing.T) { requireSameInformers(t, live.config, served.config(t)) })
	t.Run("helm", func(t *testing.T) { requireHelm(t, served.config(t)) })
	t.Run("kubectl", func(t *testing.T) {
		requireSameText(t, live.kubectl(t), served,
			linked(t, path, "--show-secrets"))
	})
}

// requireSameText requires that kubectl prints the same for a snapshot as for the API server that
// wrote it, and that the linked kubectl prints the same again.
func requireSameText(t *testing.T, live, served, own kubectl) {
	t.Helper()
	types, ok := served.run(t, "api-resources", "--verbs=list", "-o", "name")
	require.True(t, ok, types)
	for _, command := range reading(types) {
		line := strings.Join(command, " ")
		want, _ := live.run(t, command...)
		got, ended := served.run(t, command...)
		for _, difference := range different(want, got) {
			if !justified(line, difference) {
				t.Errorf("%s: %s", line, difference)
			}
		}
		if strings.HasPrefix(line, "wait") || strings.HasPrefix(line, "rollout status") {
			continue // the linked kubectl does not wait
		}
		again, also := own.run(t, command...)
		require.Equal(t, ended, also, line)
		for _, difference := range different(got, again) {
			// The linked kubectl is newer, describes more of StatefulSets, and runs with -q.
			if !strings.HasPrefix(line, "describe statefulsets") &&
				!strings.HasPrefix(difference, "live:   Warning: ") {
				t.Errorf("linked: %s: %s", line, difference)
			}
		}
	}
}

// TestKubectlRefused checks that an operation impossible on a file fails with an error that says
// why.
func TestKubectlRefused(t *testing.T) {
	t.Parallel()
	k := serve(t, snapshotOf(t, "before"))
	const readOnly = "served read-only: nothing can be changed"
	manifest := filepath.Join(t.TempDir(), "default.yaml")
	require.NoError(t, os.WriteFile(manifest, []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: default\n  "+
		"labels: {new: label}\n"), 0o600))
	_, ok := k.run(t, "api-resources") // cached in its home: kubectl hides the sentence if discovery is refused
	require.True(t, ok)
	for line, want := range map[string]string{
		"delete ns default":                     readOnly,
		"create ns new":                         readOnly,
		"label ns default a=b":                  readOnly,
		"annotate ns default a=b":               readOnly,
		"create configmap x --dry-run=server":   readOnly,
		"patch ns default -p {}":                readOnly,
		"auth can-i delete pods":                "no - a snapshot is served read-only",
		"top nodes":                             "Metrics API not available",
		"auth whoami":                           "etcdshift:reader",
		"get --raw /api/v1/nodes/x/proxy/stats": "it has no servers behind it",
		"get pods -A --as alice":                "nobody can be impersonated",
		"auth can-i get pods --as alice":        "no - no RBAC rule in the snapshot allows it",
		"auth can-i --list":                     "[get list watch]",
		"taint node x a=b:NoSchedule":           `nodes "x" not found`,
		"run x --image=x":                       readOnly,
		"apply -f " + manifest:                  readOnly,
		"apply --server-side -f " + manifest:    readOnly,
		"replace -f " + manifest:                readOnly,
		"diff -f " + manifest:                   readOnly,
	} {
		text, _ := k.run(t, strings.Fields(line)...)
		require.Contains(t, text, want, line)
	}
	text, _ := k.run(t, "version", "--output=json")
	require.Contains(t, text, "+etcdshift")
}
