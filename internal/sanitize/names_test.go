package sanitize

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// cast plants names: NS, NODE, APP, and names derived from them.
type cast struct {
	planter
	names []string
}

func (c *cast) name(suffix string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	out := make([]byte, 0, 20)
	for i := range 14 {
		if i == 6 {
			out = append(out, '-')
		}
		out = append(out, letters[c.rand.IntN(len(letters))])
	}
	c.names = append(c.names, string(out)+suffix)
	return string(out) + suffix
}

const everywhere = `see APP in NS on NODE, http://APP.NS.svc:80, NS/APP, /api/v1/namespaces/NS/pods/APP-0, ` +
	`APP_UPPER_PORT=1,\nAPP: {\"name\": \"APP\"}`

// objects returns one object of each kind with references.
func objects() map[string]string {
	pod :=
		`{"metadata":{"labels":{"app":"APP"}},"spec":{"nodeName":"NODE","serviceAccountName":"APP",` +
			`"imagePullSecrets":[{"name":"APP"}],"priorityClassName":"APP",` +
			`"containers":[{"name":"APP","image":"registry.example.com/APP:1","command":["sh","-c","run APP"],` +
			`"env":[{"name":"A","value":"EVERY"},` +
			`{"name":"B","valueFrom":{"secretKeyRef":{"name":"APP","key":"APP.txt"}}}],` +
			`"envFrom":[{"configMapRef":{"name":"APP"}}],"volumeMounts":[{"name":"APP","mountPath":"/APP"}]}],` +
			`"volumes":[{"name":"APP","persistentVolumeClaim":{"claimName":"APP"}},{"name":"b",` +
			`"projected":{"sources":[{"configMap":{"name":"APP"}}]}}],` +
			`"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["NODE"]}]}]}}}}}`
	meta :=
		`"metadata":{"name":"APP","namespace":"NS","labels":{"app":"APP","APP":"a"},"annotations":{"note":"EVERY",` +
			`"kubectl.kubernetes.io/last-applied-configuration":"{\"metadata\":{\"name\":\"APP\"}}"},` +
			`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"APP","uid":"u"}],` +
			`"managedFields":[{"manager":"APP","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",` +
			`"fieldsV1":{"f:data":{"f:APP.txt":{},"k:{\"name\":\"APP\"}":{}}}}]}`
	cluster := strings.Replace(meta, `"namespace":"NS",`, "", 1)
	selector := `"selector":{"matchLabels":{"app":"APP"}}`
	return map[string]string{
		"namespaces/NS": `"v1","kind":"Namespace","metadata":{"name":"NS",` +
			`"labels":{"kubernetes.io/metadata.name":"NS"},"annotations":{"a":"EVERY"}}`,
		"minions/NODE": `"v1","kind":"Node","metadata":{"name":"NODE",` +
			`"labels":{"kubernetes.io/hostname":"NODE"}},"status":{"addresses":[{"type":"Hostname","address":"NODE"}]}`,
		"leases/kube-node-lease/NODE": `"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"NODE",` +
			`"namespace":"kube-node-lease"},"spec":{"holderIdentity":"NODE"}`,
		"pods/kube-system/etcd-NODE": `"v1","kind":"Pod","metadata":{"name":"etcd-NODE","namespace":"kube-system"},` +
			`"spec":{"nodeName":"NODE","containers":[{"name":"etcd","image":"etcd"}]}`,
		"configmaps/NS/APP": `"v1","kind":"ConfigMap",` + meta +
			`,"data":{"APP.txt":"EVERY","a.yaml":"host: APP.NS\nname: APP\n","64":"BASE64"},` +
			`"binaryData":{"a":"BASE64","b":"GZIP"}`,
		"secrets/NS/APP": `"v1","kind":"Secret",` + meta +
			`,"type":"Opaque","data":{"APP.txt":"BASE64"}`,
		"serviceaccounts/NS/APP": `"v1","kind":"ServiceAccount",` + meta + `,"secrets":[{"name":"APP"}]`,
		"services/specs/NS/APP": `"v1","kind":"Service",` + meta +
			`,"spec":{"selector":{"app":"APP"},"ports":[{"name":"APP","port":80,"targetPort":"APP"}]}`,
		"services/endpoints/NS/APP": `"v1","kind":"Endpoints",` + meta +
			`,"subsets":[{"addresses":[{"ip":"192.0.2.1","nodeName":"NODE","targetRef":{"kind":"Pod","name":"APP-0",` +
			`"namespace":"NS"}}]}]`,
		"statefulsets/NS/APP": `"apps/v1","kind":"StatefulSet",` + meta + `,"spec":{"serviceName":"APP",` +
			selector + `,"template":` + pod + `}`,
		"pods/NS/APP-0": `"v1","kind":"Pod","metadata":{"name":"APP-0","namespace":"NS",` +
			`"labels":{"statefulset.kubernetes.io/pod-name":"APP-0"}},` + pod[strings.Index(pod, `"spec"`):len(pod)-1],
		"persistentvolumeclaims/NS/APP": `"v1","kind":"PersistentVolumeClaim",` + meta +
			`,"spec":{"volumeName":"APP","storageClassName":"APP"}`,
		"persistentvolumes/APP": `"v1","kind":"PersistentVolume",` + cluster +
			`,"spec":{"claimRef":{"name":"APP","namespace":"NS"},"storageClassName":"APP"}`,
		"storageclasses/APP": `"storage.k8s.io/v1","kind":"StorageClass",` + cluster +
			`,"provisioner":"example.com/p"`,
		"ingress/NS/APP": `"networking.k8s.io/v1","kind":"Ingress",` + meta +
			`,"spec":{"ingressClassName":"APP","defaultBackend":{"service":{"name":"APP","port":{"name":"APP"}}},` +
			`"tls":[{"hosts":["APP.example.com"],"secretName":"APP"}]}`,
		"rolebindings/NS/APP": `"rbac.authorization.k8s.io/v1","kind":"RoleBinding",` + meta +
			`,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"APP"},` +
			`"subjects":[{"kind":"ServiceAccount","name":"APP","namespace":"NS"},{"kind":"User",` +
			`"name":"system:serviceaccount:NS:APP"}]`,
		"roles/NS/APP": `"rbac.authorization.k8s.io/v1","kind":"Role",` + meta +
			`,"rules":[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["APP"],"verbs":["get"]}]`,
		"horizontalpodautoscalers/NS/APP": `"autoscaling/v2","kind":"HorizontalPodAutoscaler",` + meta +
			`,"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"StatefulSet","name":"APP"},"maxReplicas":2}`,
		"validatingwebhookconfigurations/APP": `"admissionregistration.k8s.io/v1",` +
			`"kind":"ValidatingWebhookConfiguration",` + cluster +
			`,"webhooks":[{"name":"APP.example.com","clientConfig":{"service":{"name":"APP","namespace":"NS"}},` +
			`"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn",` +
			`"values":["NS"]}]},"sideEffects":"None","admissionReviewVersions":["v1"]}]`,
		"events/NS/APP-0.17a": `"v1","kind":"Event","metadata":{"name":"APP-0.17a",` +
			`"namespace":"NS"},"message":"EVERY","reason":"Started","involvedObject":{"kind":"Pod","name":"APP-0",` +
			`"namespace":"NS"},"source":{"component":"kubelet","host":"NODE"}`,
		"volumeattachments/csi-APP": `"storage.k8s.io/v1","kind":"VolumeAttachment",` +
			`"metadata":{"name":"csi-APP"},"spec":{"attacher":"example.com","nodeName":"NODE",` +
			`"source":{"persistentVolumeName":"APP"}}`,
		"secrets/NS/sh.helm.release.v1.APP.v3": `"v1","kind":"Secret","metadata":{"name":"sh.helm.release.v1.APP.v3",` +
			`"namespace":"NS","labels":{"owner":"helm","name":"APP"}},"type":"helm.sh/release.v1",` +
			`"data":{"release":"HELM"}`,
	}
}

// plantNames returns a snapshot with names that many objects refer to.
func plantNames(t testing.TB, rounds int) (path string, names []string) {
	c := &cast{planter: planter{t: t, rand: rand.New(rand.NewPCG(3, 4))}}
	c.put("/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com", thingCRD)
	for range rounds {
		ns, node, common := c.name(""), c.name("-7"), c.name("")
		objects := objects()
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			app, object := common, objects[key]
			if strings.HasSuffix(key, "/APP") && key != "statefulsets/NS/APP" {
				app = c.name("")
			}
			fill := func(text string) string {
				return strings.NewReplacer("APP_UPPER", strings.ToUpper(strings.ReplaceAll(app, "-", "_")), "APP", app,
					"NODE", node, "NS", ns).Replace(text)
			}
			every := fill(everywhere)
			object = fill(strings.NewReplacer("EVERY", "%[1]s", "BASE64", "%[2]s", "GZIP", "%[3]s", "HELM",
				"%[4]s").Replace(object))
			release := fill(
				`{"name":"APP","namespace":"NS","chart":{"metadata":{"name":"APP"}},"config":{"a":"APP"},` +
					`"manifest":"kind: ConfigMap\nname: APP\n"}`)
			object = strings.NewReplacer("%[1]s", every, "%[2]s", encode(fill("use APP in NS")), "%[3]s",
				encode(gzipped(t, fill("at APP"))), "%[4]s", encode(encode(gzipped(t, release)))).Replace(object)
			c.putNative("/registry/"+fill(key), `{"apiVersion":`+object+`}`)
		}
		c.put(widgetsDir[:len(widgetsDir)-len("shop/")]+ns+"/"+common,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"`+common+`","namespace":"`+ns+
				`"},"spec":{"token":"Abcdefghijklmno","targetRef":{"name":"`+common+`"},"note":"on `+node+`"}}`)
	}
	return etcdtest.Build(t, c.script.String()), c.names
}

func gzipped(t testing.TB, text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.String()
}

// hashed runs sanitize without --keep-names.
func hashed(t testing.TB, in, key string) (*transform.Report, []byte) {
	t.Helper()
	options := transform.Options{Command: "sanitize", In: in, Out: filepath.Join(t.TempDir(), "out.db")}
	report, err := transform.Run(t.Context(), options, &sanitizer{masker: masker{key: []byte(key)}})
	require.NoError(t, err, "%v", report.Problems)
	out, err := os.ReadFile(options.Out)
	require.NoError(t, err)
	return report, out
}

// all returns data with the decoded content of its encoded and packed parts.
func all(data []byte, depth int) []byte {
	return []byte(strings.ToLower(strings.ReplaceAll(secrettest.Unpack(string(data), depth), "_", "-")))
}

// TestNames checks that no planted name is in any byte, also encoded or packed, that the number of
// records stays, and that the same key gives the same bytes.
func TestNames(t *testing.T) {
	in, names := plantNames(t, 14)
	require.Greater(t, len(names), 200)
	report, out := hashed(t, in, "key")
	_, again := hashed(t, in, "key")
	require.True(t, bytes.Equal(out, again))
	require.Equal(t, report.Changes.Deleted, report.Changes.Created)
	require.Empty(t, report.Problems)
	requireNone(t, out, names)
	eachValue(t, report.Output.Path, func(e *inspect.Entry) {
		require.NoError(t, e.Check(), "%s", e.Key)
		content, err := native.Decode(e.Value)
		require.NoError(t, err)
		text, err := json.Marshal(content)
		require.NoError(t, err)
		requireNone(t, all(text, 5), names)
	})
	section := transformtest.Section[Sanitized](report)
	require.Greater(t, section.Names.Replaced, 200)
	require.Empty(t, section.Names.Kept)
}

func requireNone(t testing.TB, data []byte, names []string) {
	t.Helper()
	for _, name := range names {
		if at := bytes.Index(data, []byte(name)); at >= 0 {
			t.Fatalf("%s: %q", name, data[max(at-80, 0):min(at+80, len(data))])
		}
	}
}

func eachValue(t testing.TB, path string, visit func(e *inspect.Entry)) {
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for e, err := range inspect.NewReader(s, nil).Live(t.Context(), nil) {
		require.NoError(t, err)
		visit(e)
	}
}

// TestFindings checks that doctor reports the same findings about recorded clusters, and that
// owners still resolve.
func TestFindings(t *testing.T) {
	for _, name := range []string{"calico/before.db.gz", "kubectl/all.db.gz", "kcp/root-before.db.gz",
		"kcp/cache-before.db.gz", "kcp-claims/root.db.gz"} {
		in := etcdtest.Unpack(t, filepath.Join("../../testdata", name))
		report, _ := hashed(t, in, "key")
		require.Equal(t, findings(t, in), findings(t, report.Output.Path), name)
	}
}

// findings counts the findings of doctor, except those that a new file resolves.
func findings(t testing.TB, path string) map[string]int {
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	report, err := doctor.Examine(context.Background(), inspect.NewReader(s, nil),
		doctor.Options{Ignore: []string{"no-digest"}})
	require.NoError(t, err)
	out := map[string]int{}
	for _, f := range report.Findings {
		out[fmt.Sprint(f.Code.Name, f.Level)]++
	}
	return out
}

const enumCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"tubes.example.com","uid":"u1"},"spec":{"group":"example.com",
"scope":"Namespaced","names":{"plural":"tubes","singular":"tube","kind":"Tube","listKind":"TubeList","shortNames":["payroll"],"categories":["payroll"]},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
"namespace":{"type":"string","default":"payroll","enum":["payroll","pay","Payday"]},"action":{"type":"string","enum":["Allow","payroll","Deny"]},
"enum":{"type":"object","properties":{"default":{"type":"string","example":"payroll"}}}}}}}}}]},
"status":{"acceptedNames":{"plural":"tubes","kind":"Tube","shortNames":["payroll"]},"storedVersions":["v1"]}}`

// TestDefinedWords checks that names are replaced even if a definition has them as values, and that
// objects still fit.
func TestDefinedWords(t *testing.T) {
	p := planter{t: t, rand: rand.New(rand.NewPCG(3, 4))}
	p.put("/registry/apiextensions.k8s.io/customresourcedefinitions/tubes.example.com", enumCRD)
	for _, ns := range []string{"payroll", "pay", "allow"} {
		p.put("/registry/namespaces/"+ns, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+ns+`"}}`)
		p.put("/registry/example.com/tubes/"+ns+"/a",
			`{"apiVersion":"example.com/v1","kind":"Tube","metadata":{"name":"a","namespace":"`+ns+`"},
"spec":{"namespace":"pay","action":"Allow","enum":{"default":"for payroll"}}}`)
	}
	report, out := hashed(t, etcdtest.Build(t, p.script.String()), "key")
	require.Empty(t, report.Problems)
	requireNone(t, out, []string{"payroll", "allow", `"pay"`})
	require.Equal(t, 1, bytes.Count(out, []byte(`"enum":["Allow",`)), "a constant with a capital letter stays")
	require.Equal(t, 3, bytes.Count(out, []byte(`"action":"Allow"`)))
}

// TestReported checks the files of bug reports, and that no step suggests a restore.
func TestReported(t *testing.T) {
	unchecked := []string{"h.example/gizmos/default/g"} // invalid for its schema
	for file, names := range map[string][]string{
		"sanitize-crd-default": {"acmecorp-payroll"}, "sanitize-names-in": {"warehouse-berlin"}, "errors": unchecked,
		"uniq-10k": unchecked,
	} {
		report, out := hashed(t, etcdtest.Unpack(t, filepath.Join("..", "..", "testdata", "reports", file+".db.gz")),
			"key")
		requireNone(t, all(out, 3), names)
		require.Empty(t, report.Restore)
		require.Contains(t, strings.Join(report.Steps, "\n"), "do not restore it")
	}
}

var update = flag.Bool("update", false, "write vocabulary.txt")

var phrase = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9./_:-]{2,60}$`)

// TestVocabulary checks that vocabulary.txt has the constants and fields of the linked APIs.
func TestVocabulary(t *testing.T) {
	found := map[string]bool{}
	for module, dir := range map[string]string{"k8s.io/api": ".", "k8s.io/apimachinery": "pkg/apis/meta/v1",
		"k8s.io/apiextensions-apiserver": "pkg/apis/apiextensions"} {
		root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		require.NoError(t, err)
		err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), dir),
			func(path string, d fs.DirEntry, err error) error {
				if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") &&
					!strings.Contains(path, "generated") {
					addPhrases(t, path, found)
				}
				return err
			})
		require.NoError(t, err)
	}
	var list []string
	for text := range found {
		if phrase.MatchString(text) {
			list = append(list, text)
		}
	}
	slices.Sort(list)
	text := strings.Join(list, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile("vocabulary.txt", []byte(text), 0o644))
	}
	require.True(t, *update || text == constants, "run go test -run TestVocabulary -update")
}

// addPhrases adds the string constants and JSON field names of a Go file.
func addPhrases(t *testing.T, path string, to map[string]bool) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, value := range n.Values {
				if literal, is := value.(*ast.BasicLit); is && literal.Kind == gotoken.STRING {
					text, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					to[text] = true
				}
			}
		case *ast.Field:
			if n.Tag != nil {
				name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(n.Tag.Value, "`")).Get("json"), ",")
				to[name] = true
			}
		}
		return true
	})
}
