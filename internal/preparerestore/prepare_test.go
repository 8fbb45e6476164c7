package preparerestore

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// TestSteps checks the deletions and changes of each step alone, also with a kept node.
func TestSteps(t *testing.T) {
	path := written(t, world()...)
	before := contents(t, path)
	for _, tc := range []struct {
		steps            []string
		keep             []string
		deleted, changed []string
	}{
		{steps: []string{"api-servers"}, deleted: []string{"leases/kube-system/apiserver-abc", "masterleases/192.0.2.1",
			"services/endpoints/default/kubernetes"}},
		{steps: []string{"leader-election"}, deleted: []string{"leases/a/l", "leases/kube-system/kube-scheduler"},
			changed: []string{"configmaps/shop/leader"}},
		{steps: []string{"nodes"}, deleted: []string{"csinodes/n1", "leases/kube-node-lease/n1",
			"leases/kube-node-lease/n2", "minions/n1", "minions/n2",
			"resourceslices/for-n1", "resourceslices/on-n1", "secrets/kube-system/n1.node-password.k3s",
			"secrets/kube-system/n2.node-password.k3s"},
			changed: []string{"persistentvolumeclaims/shop/waits"}},
		{steps: []string{"nodes"}, keep: []string{"n1"}, deleted: []string{"leases/kube-node-lease/n2", "minions/n2",
			"secrets/kube-system/n2.node-password.k3s"}},
		{steps: []string{"pods"}, deleted: []string{"pods/a/leaving", "pods/a/run", "pods/shop/bare", "pods/shop/gone",
			"pods/shop/kept", "pods/shop/mirror", "pods/shop/tracked", "pods/shop/web"}},
		{steps: []string{"pods"}, keep: []string{"n2"}, deleted: []string{"pods/a/run", "pods/shop/bare",
			"pods/shop/gone", "pods/shop/mirror", "pods/shop/tracked", "pods/shop/web"}},
		{steps: []string{"dependents"}},
		{steps: []string{"pods", "dependents"}, keep: []string{"n2"},
			deleted: []string{"configmaps/shop/of-cm", "configmaps/shop/of-web",
				"pods/a/run", "pods/shop/bare", "pods/shop/gone", "pods/shop/mirror", "pods/shop/tracked",
				"pods/shop/web"}},
		{steps: []string{"endpoints"}, deleted: []string{"endpointslices/shop/web"},
			changed: []string{"services/endpoints/shop/web"}},
		{steps: []string{"endpoints"}, keep: []string{"n1"}},
		{steps: []string{"volume-attachments"}, keep: []string{"n2"},
			deleted: []string{"volumeattachments/on-n1", "volumeattachments/va"}},
		{steps: []string{"certificate-requests"}, deleted: []string{"certificatesigningrequests/csr1",
			"podcertificaterequests/shop/p"}},
		{steps: []string{"events"}, deleted: []string{"events/a/e1", "events/a/e2"}},
		{steps: []string{"bootstrap-tokens"}, deleted: []string{"secrets/kube-system/bootstrap-token-abcdef"}},
		{steps: []string{"service-account-tokens"}, changed: []string{"secrets/shop/sa"}},
		{steps: []string{"webhooks"}, changed: []string{"validatingwebhookconfigurations/guard"}},
		{steps: []string{"api-services"}, deleted: []string{"apiregistration.k8s.io/apiservices/v1.gone.example.com"}},
		{steps: []string{"endpoints", "api-services"}, changed: []string{"services/endpoints/shop/web"},
			deleted: []string{"apiregistration.k8s.io/apiservices/v1.gone.example.com",
				"apiregistration.k8s.io/apiservices/v1.metrics.example.org", "endpointslices/shop/web"}},
	} {
		t.Run(strings.Join(append(tc.steps, tc.keep...), " "), func(t *testing.T) {
			r, err := runOn(t, path, prepared(tc.keep, tc.steps...))
			require.NoError(t, err, "%v", r.Problems)
			var deleted, changed []string
			for key, content := range before {
				switch now, there := r.values[key]; {
				case !there:
					deleted = append(deleted, key)
				default:
					if w, _ := changedFields(content, now); w {
						changed = append(changed, key)
					}
				}
			}
			slices.Sort(deleted)
			slices.Sort(changed)
			require.Equal(t, tc.deleted, deleted)
			require.Equal(t, tc.changed, changed)
			require.Equal(t, transform.Changes{Deleted: len(deleted), Updated: len(changed)}, r.Changes)
		})
	}
}

// TestWebhookOutside checks that a webhook behind an ExternalName Service outside the cluster stays
// unchanged.
func TestWebhookOutside(t *testing.T) {
	const key = "validatingwebhookconfigurations/outside"
	for name, is := range map[string]string{"hooks.example.com": "Fail", "web.shop.svc.cluster.local": "Ignore"} {
		path := written(t, object("services/specs/shop/alias", "v1", "Service", in,
			`,"spec":{"type":"ExternalName","externalName":"`+name+`"}`),
			object(key, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", `,"uid":"o"`,
				`,"webhooks":[`+hook("a.example.com", `"service":{"namespace":"shop","name":"alias"}`, "Fail")+`]`))
		r, err := runOn(t, path, prepared(nil, "webhooks"))
		require.NoError(t, err)
		require.Equal(t, is, r.values[key]["webhooks"].([]any)[0].(map[string]any)["failurePolicy"], name)
	}
}

func changedFields(a, b map[string]any) (bool, map[string]any) {
	was, _ := changed(a, b)
	return len(was) > 0, was
}

// TestNothingLeft checks that doctor finds in the output only the ties listed as manual steps, and
// that a second run changes nothing.
func TestNothingLeft(t *testing.T) {
	path := written(t, world()...)
	p := prepared(nil)
	p.steps = slices.Concat(p.steps, prepared(nil, "service-account-tokens").steps)
	r, err := runOn(t, path, p)
	require.NoError(t, err, "%v", r.Problems)
	left := diagnosed(t, r.out)
	require.Subset(t, []string{
		machines.CodeNodePinned.Name, machines.CodeNodeVolume.Name, machines.CodeAPIAddress.Name,
		machines.CodeServiceAddress.Name, machines.CodeServiceRange.Name,
		machines.CodeWebhookURL.Name, machines.CodeClusterCA.Name, machines.CodeNotInFile.Name,
		"bump-revision", "etcd-version", "owner-gone", "owner-unchecked", "unknown-kind", "namespace-gone",
	}, left, "before: %v", diagnosed(t, path))
	for _, code := range machines.Codes() {
		if slices.Contains(left, code.Name) && code != machines.CodeNotInFile {
			require.True(t, slices.ContainsFunc(r.Steps, func(step string) bool {
				return strings.HasPrefix(step,
					code.Name+": ")
			}), "%s: %v", code.Name, r.Steps)
		}
	}
	again, err := runOn(t, r.out, p)
	require.NoError(t, err)
	require.Equal(t, transform.Unchanged, again.Outcome, "%v", again.Changes)
}

// diagnosed returns the codes that doctor finds for new machines.
func diagnosed(t testing.TB, path string) (names []string) {
	t.Helper()
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	report, err := doctor.Examine(t.Context(), inspect.NewReader(s, nil), doctor.Options{NewMachines: true})
	require.NoError(t, err)
	for _, f := range report.Findings {
		names = append(names, f.Code.Name)
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// TestReported checks that lost Pods are listed and the report has no Secret value.
func TestReported(t *testing.T) {
	path := written(t, world()...)
	p := prepared([]string{"n2"})
	p.steps = slices.Concat(p.steps, prepared(nil, "service-account-tokens").steps)
	r, err := runOn(t, path, p)
	require.NoError(t, err)
	var named []string
	for _, problem := range r.Problems {
		if problem.Code == codeBarePod || problem.Code == transform.CodeFinalizers {
			named = append(named, problem.Code.Name+" "+strings.TrimPrefix(problem.Key, "/registry/"))
		}
	}
	require.Equal(t, []string{"bare-pod pods/a/run", "bare-pod pods/shop/bare"}, named)
	text, err := r.MarshalJSON()
	require.NoError(t, err)
	for _, secret := range []string{"cGFzc3dvcmQ", "password\""} {
		require.NotContains(t, string(text), secret)
	}
	require.Len(t, r.Saved, 3)
}

// TestKeepNode checks that an unknown node name refuses the run.
func TestKeepNode(t *testing.T) {
	r, err := runOn(t, written(t), prepared([]string{"n7"}))
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, codeKeepNode, r.Problems[len(r.Problems)-1].Code)
	for _, product := range []string{"k3s", "rke2"} {
		node := record{"minions/n8", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n8","annotations":{"etcd.` +
			product + `.cattle.io/remove":"True","a":"b"}}}`}
		r, err := runOn(t, written(t, node), prepared([]string{"n8"}, "nodes"))
		require.NoError(t, err)
		require.Equal(t, 1, r.Changes.Updated, product)
	}
}

// TestUnreadable checks that unreadable values refuse the run, and stay unchanged if allowed.
func TestUnreadable(t *testing.T) {
	path := written(t, record{"pods/shop/broken", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":7}}`},
		record{"secrets/shop/closed", "k8s:enc:aescbc:v1:key1:0123456789abcdef"})
	p := prepared(nil, "pods", "service-account-tokens")
	r, err := runOn(t, path, p)
	require.ErrorIs(t, err, transform.ErrRefused)
	all, refusing := r.Errors()
	require.Equal(t, []int{2, 2}, []int{all, refusing}, "%v", r.Problems)
	require.Contains(t, r.Steps[1], "the EncryptionConfiguration with the keys of the old ones", "before the restore")
}

// TestPage checks that the documentation page has the table of the code.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/prepare-restore.md")
	require.NoError(t, err)
	for _, s := range steps() {
		require.Contains(t, string(page), "| `"+s.name+"` | ")
	}
	for _, w := range append(table(), noSwitch()...) {
		require.Contains(t, string(page), "\n"+w.line()+"\n")
	}
	for _, actor := range actors() {
		require.Contains(t, string(page), "`"+actor+"`")
	}
}

// line returns a row of the page.
func (w row) line() string {
	return "| " + w.who + " | `" + strings.Join(w.types, "`, `") + "` | " + w.change() + " |"
}

const (
	going    = `,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["%"]`
	useClaim = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"db","namespace":"shop","uid":"uid-db"},` +
		`"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v",` +
		`"persistentVolumeClaim":{"claimName":"data"}}]}}`
)

func goingOf(finalizer string) string { return strings.ReplaceAll(going, "%", finalizer) }

func volume(policy, meta string) record {
	return object("persistentvolumes/pv-data", "v1", "PersistentVolume", `,"uid":"uid-pv"`+meta,
		`,"spec":{"persistentVolumeReclaimPolicy":"`+policy+
			`","csi":{"driver":"d","volumeHandle":"h"},"claimRef":{"kind":"PersistentVolumeClaim","namespace":"shop",`+
			`"name":"data","uid":"uid-data"}}`)
}

func claim(meta string) record {
	return object("persistentvolumeclaims/shop/data", "v1", "PersistentVolumeClaim", in+`,"uid":"uid-data"`+meta,
		`,"spec":{"volumeName":"pv-data"}`)
}

// freedCase has records, the Nodes that stay, and the finding on them.
type freedCase struct {
	with  []record
	keep  []string
	steps []string
	code  *finding.Code // nil for none
	key   string
}

func freedCases() map[string]freedCase {
	user := record{"pods/shop/db", useClaim}
	dying := claim(goingOf("kubernetes.io/pvc-protection"))
	attached := object("volumeattachments/of-pv1", "storage.k8s.io/v1", "VolumeAttachment", ``,
		`,"spec":{"attacher":"d","nodeName":"n1","source":{"persistentVolumeName":"pv-data"}}`)
	other := record{"pods/shop/other", strings.NewReplacer(`"db"`, `"other"`, "uid-db", "uid-other", `"n1"`,
		`"n2"`).Replace(useClaim)}
	ended := record{"pods/shop/db", strings.Replace(useClaim, `"spec"`, `"status":{"phase":"Succeeded"},"spec"`, 1)}
	owned := record{"pods/shop/other", strings.Replace(other.value, `"uid":"uid-other"`,
		`"uid":"uid-other","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"driver","uid":"uid-driver"}]`, 1)}
	const claimKey, volumeKey = "/registry/persistentvolumeclaims/shop/data", "/registry/persistentvolumes/pv-data"
	return map[string]freedCase{
		"the last user": {with: []record{user, dying, volume("Delete", "")},
			code: objects.CodeVolumeFreed, key: claimKey},
		"the last user, its node comes back": {with: []record{user, dying, volume("Delete", "")},
			keep: []string{"n1"}},
		"another user stays": {with: []record{user, other, dying, volume("Delete", "")},
			keep: []string{"n2"}},
		"a retained volume": {with: []record{user, dying, volume("Retain", "")},
			code: objects.CodeFreed, key: claimKey},
		"a recycled volume": {with: []record{user, dying, volume("Recycle", "")},
			code: objects.CodeVolumeFreed, key: claimKey},
		"a claim that is not being deleted": {with: []record{user, claim(""), volume("Delete", "")}},
		"nobody used it":                    {with: []record{dying, volume("Delete", "")}},
		"the attachment of an unclaimed volume": {with: []record{attached, volume("Delete", "")},
			code: objects.CodeVolumeFreed, key: volumeKey},
		"the same, retained": {with: []record{attached,
			volume("Retain", goingOf("external-attacher/d"))}, code: objects.CodeFreed, key: volumeKey},
		"the attachment of a claimed volume": {with: []record{attached, claim(""), volume("Delete", "")}},
		"a claim that was made for a Pod": {with: []record{user,
			claim(
				`,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"db","uid":"uid-db","controller":true}],` +
					`"finalizers":["kubernetes.io/pvc-protection"]`), volume("Delete", "")},
			code: objects.CodeFreed, key: claimKey},
		"the content of a dying namespace": {with: []record{object("namespaces/shop", "v1", "Namespace",
			goingOf("x/y"), ``), pod("held", `,"finalizers":["x/y"]`, "n1")}, code: objects.CodeFreed,
			key: "/registry/namespaces/shop"},
		"Pods on Nodes that are deleted": {with: []record{user, dying, volume("Delete", "")},
			steps: []string{"nodes"}, code: objects.CodeVolumeFreed, key: claimKey},
		"a Pod that has ended, on such a Node": {with: []record{ended, dying, volume("Delete", "")},
			code: objects.CodeVolumeFreed, key: claimKey},
		"a Pod of a deleted Pod": {with: []record{owned, dying, pod("driver", ``, "n1"),
			volume("Delete", "")}, keep: []string{"n2"}, steps: []string{"pods"}, code: objects.CodeVolumeFreed,
			key: claimKey},
		"a Pod of a Pod that stays": {with: []record{owned, dying, pod("driver", ``, "n2"),
			volume("Delete", "")}, keep: []string{"n2"}, steps: []string{"pods"}},
		"a claim of another Pod": {with: []record{user,
			claim(
				`,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"other","uid":"uid-other",` +
					`"controller":true}],"finalizers":["kubernetes.io/pvc-protection"]`), other, volume("Delete", "")},
			keep: []string{"n2"}},
		"a Pod that never came to a node stays": {with: []record{dying, volume("Delete", ""),
			{"pods/shop/db", strings.Replace(useClaim, `"nodeName":"n1",`, "", 1)}}},
	}
}

// TestFreed checks that a run that removes the last obstacle to a deletion refuses if a volume
// would be destroyed, and otherwise warns.
func TestFreed(t *testing.T) {
	for name, tc := range freedCases() {
		t.Run(name, func(t *testing.T) {
			path := written(t, tc.with...)
			r, err := runOn(t, path, prepared(tc.keep, tc.steps...))
			var keys []string
			for _, problem := range r.Problems {
				if problem.Code == objects.CodeVolumeFreed || problem.Code == objects.CodeFreed {
					require.Equal(t, tc.code, problem.Code, problem.Reason)
					keys = append(keys, problem.Key)
				}
			}
			if tc.code == nil {
				require.Empty(t, keys)
			} else {
				require.Equal(t, []string{tc.key}, keys)
			}
			if tc.code != objects.CodeVolumeFreed {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, transform.ErrRefused)
			_, err = runOn(t, path, prepared(tc.keep, tc.steps...), tc.code.Name)
			require.NoError(t, err)
		})
	}
	t.Run("isolated", func(t *testing.T) {
		p := prepared(nil)
		p.isolated, p.steps = true, append(p.steps, prepared(nil, "volumes").steps...)
		user, dying := record{"pods/shop/db", useClaim}, claim(goingOf("kubernetes.io/pvc-protection"))
		r, err := runOn(t, written(t, user, dying, volume("Delete", "")), p)
		require.NoError(t, err, "%v", r.Problems)
	})
}
