package graft

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
)

// conflict is an import with a conflict.
type conflict struct {
	name     string
	in, from []string // objects of B and of the archive
	want     []string // problems
}

// conflicts returns each conflict of an import.
func conflicts() []conflict { return append(conflictsOfNames(), conflictsOfUse()...) }

// conflictsOfNames returns the conflicts of keys, UIDs, needed objects and volumes.
func conflictsOfNames() []conflict {
	space := core("Namespace", "namespaces", "", "a", "")
	return []conflict{
		{"nothing", []string{space}, []string{core("Secret", "secrets", "a", "s", "")}, nil},
		{"same", []string{space}, []string{space}, nil},
		{"other value", []string{space}, []string{core("Namespace", "namespaces", "", "a", `,"spec":{}`)},
			[]string{"error key-exists namespaces/a"}},
		{"UID twice", []string{space, core("ConfigMap", "configmaps", "a", "x", "")},
			[]string{core("Secret", "secrets", "a", "x", "")}, []string{"error duplicate-uid secrets/a/x"}},
		{"namespace", nil, []string{core("Secret", "secrets", "a", "s", "")},
			[]string{"error namespace-missing namespaces/a"}},
		{"terminating", []string{object("v1", "Namespace", "namespaces", "", "a",
			`,"deletionTimestamp":"2026-01-01T00:00:00Z"`, "")}, []string{core("Secret", "secrets", "a", "s", "")},
			[]string{"error namespace-terminating namespaces/a"}},
		{"no definition", []string{space}, []string{widget("v1")}, []string{
			"error missing-definition apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"}},
		{"unlisted version", []string{space, widgets("v2")}, []string{widget("v1")},
			[]string{"error unlisted-version example.com/widgets/a/w"}},
		{"owner", []string{space}, []string{owned("c", "Secret", "s")}, []string{"error owner-outside configmaps/a/c"}},
		{"owner in the archive", []string{space},
			[]string{owned("c", "Secret", "s"), core("Secret", "secrets", "a", "s", "")}, nil},
		{"class", []string{space}, []string{podOf(`"priorityClassName":"high","runtimeClassName":"fast"`)},
			[]string{"error need-missing priorityclasses/high", "error need-missing runtimeclasses/fast"}},
		{"config map", []string{space}, []string{podOf(`"volumes":[{"name":"v","configMap":{"name":"c"}}]`)},
			[]string{"warning need-missing configmaps/a/c"}},
		{"node", []string{space}, []string{podOf(`"nodeName":"n1"`)}, []string{"error node-missing minions/n1"}},
		{"node of a volume", []string{space}, []string{core("PersistentVolume", "persistentvolumes", "", "pv",
			`,"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[`+
				`{"key":"kubernetes.io/hostname","operator":"In","values":["n1"]}]}]}}}`)},
			[]string{"warning node-missing persistentvolumes/pv"}},
		{"volume of another claim", []string{space, volume("pv", "Delete", `{"namespace":"b","name":"x","uid":"u"}`)},
			[]string{claim("data", "pv")}, []string{"error volume-held persistentvolumeclaims/a/data"}},
		{"volume of an earlier claim", []string{space, volume("pv", "Retain", `{"namespace":"a","name":"data","uid":"u"}`)},
			[]string{claim("data", "pv")}, []string{"error volume-held persistentvolumes/pv"}},
		{"claim of another volume", []string{space, claim("data", "other"),
			volume("other", "Delete", `{"namespace":"a","name":"data","uid":"u-data"}`)},
			[]string{volume("pv", "Retain", `{"namespace":"a","name":"data","uid":"u-data"}`)},
			[]string{"error volume-held persistentvolumes/pv"}},
		{"claim gone", nil, []string{volume("pv", "Delete", `{"namespace":"a","name":"data","uid":"u-data"}`)},
			[]string{"error volume-freed persistentvolumes/pv"}},
	}
}

// podOf returns a Pod.
func podOf(spec string) string { return core("Pod", "pods", "a", "p", `,"spec":{`+spec+`}`) }

// conflictsOfUse returns the conflicts of addresses, admission, quotas and encryption.
func conflictsOfUse() []conflict {
	space := core("Namespace", "namespaces", "", "a", "")
	hook := func(rule string) string {
		return object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration",
			"validatingwebhookconfigurations", "", "hooks", "", `,"webhooks":[{"name":"x.example.com","rules":[`+rule+`]}]`)
	}
	return []conflict{
		{"cluster IP", []string{space, svc("x", "10.0.0.5", 30001)}, []string{svc("y", "10.0.0.5", 30002)},
			[]string{"error address-in-use services/specs/a/y"}},
		{"node port", []string{space, svc("x", "10.0.0.5", 30001)}, []string{svc("y", "10.0.0.6", 30001)},
			[]string{"error address-in-use services/specs/a/y"}},
		{"IPAddress", []string{space, address("10.0.0.5", "gateways", "b", "g"),
			address("10.0.0.1", "services", "b", "s")},
			[]string{svc("y", "10.0.0.5", 30001)}, []string{"error address-in-use services/specs/a/y"}},
		{"ServiceCIDR", []string{space, cidr("10.0.0.0/24")}, []string{svc("y", "10.1.0.5", 30001)},
			[]string{"error address-outside services/specs/a/y"}},
		{"ranges", []string{space, ranges("serviceips", "10.0.0.0/24", nil),
			ranges("servicenodeports", "30000-32767", nil)},
			[]string{svc("y", "10.1.0.5", 3001)}, []string{"error address-outside services/specs/a/y"}},
		{"webhook", []string{space, hook(`{"apiGroups":[""],"apiVersions":["v1"],"resources":["secrets"],"operations":["*"]}`)},
			[]string{core("Secret", "secrets", "a", "s", "")},
			[]string{"warning unadmitted validatingwebhookconfigurations/hooks"}},
		{"other webhook", []string{space, hook(`{"apiGroups":["x"],"apiVersions":["v1"],"resources":["secrets"],` +
			`"operations":["CREATE"]}`)}, []string{core("Secret", "secrets", "a", "s", "")}, nil},
		{"webhook with conditions", []string{space, hook(`{"apiGroups":[""],"apiVersions":["v1"],"resources":["secrets"],` +
			`"operations":["*"]}],"matchConditions":[{"name":"n","expression":"object.metadata.name == 't'"}`)},
			[]string{core("Secret", "secrets", "a", "s", "")}, nil},
		{"webhook with a condition that is met", []string{space, hook(`{"apiGroups":[""],"apiVersions":["v1"],` +
			`"resources":["secrets"],"operations":["*"]}],"matchConditions":[{"name":"n","expression":"oldObject == null"}`)},
			[]string{core("Secret", "secrets", "a", "s", "")},
			[]string{"warning unadmitted validatingwebhookconfigurations/hooks"}},
		{"policy", []string{space, policyOf("Validating", ""), bindingOf("Validating")},
			[]string{core("Secret", "secrets", "a", "s", ""), core("Secret", "secrets", "a", "good", ""),
				core("ConfigMap", "configmaps", "a", "c", "")}, []string{"error policy-denied secrets/a/s"}},
		{"policy without a binding", []string{space, policyOf("Validating", "")},
			[]string{core("Secret", "secrets", "a", "s", "")}, nil},
		{"policy of the archive", []string{space},
			[]string{core("Secret", "secrets", "a", "s", ""), policyOf("Validating", ""), bindingOf("Validating")},
			nil},
		{"policy with conditions", []string{space, bindingOf("Validating"), policyOf("Validating",
			`,"matchConditions":[{"name":"n","expression":"object.metadata.name == 't'"}]`)},
			[]string{core("Secret", "secrets", "a", "s", ""), core("Secret", "secrets", "a", "t", "")},
			[]string{"error policy-denied secrets/a/t"}},
		{"policy that asks the authorizer", []string{space, bindingOf("Validating"), policyOf("Validating",
			`,"matchConditions":[{"name":"n","expression":"authorizer.group('').resource('pods').check('get').allowed()"}]`)},
			[]string{core("Secret", "secrets", "a", "s", "")}, []string{"warning policy-not-evaluated "}},
		{"mutating policy", []string{space, policyOf("Mutating", ""), bindingOf("Mutating")},
			[]string{core("Secret", "secrets", "a", "s", "")}, []string{"warning unadmitted secrets/a/s"}},
		{"quota", []string{space, core("ResourceQuota", "resourcequotas", "a", "q",
			`,"spec":{"hard":{"secrets":"1","count/configmaps":"9"}}`), core("Secret", "secrets", "a", "s", "")},
			[]string{core("Secret", "secrets", "a", "t", "")}, []string{"error quota-exceeded resourcequotas/a/q"}},
		{"quota of CPU", []string{space, core("ResourceQuota", "resourcequotas", "a", "q", `,"spec":{"hard":{"requests.cpu":"1"}}`)},
			[]string{podOf(`"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1100m"}}}]`)},
			[]string{"error quota-exceeded resourcequotas/a/q"}},
		{"quota unknown", []string{space, core("ResourceQuota", "resourcequotas", "a", "q", `,"spec":{"hard":{"pods":"1"}}`),
			"put /registry/pods/a/broken {}"}, []string{core("ConfigMap", "configmaps", "a", "c", "")},
			[]string{"warning quota-exceeded resourcequotas/a/q"}},
		{"quota for others", []string{space, core("ResourceQuota", "resourcequotas", "a", "q",
			`,"spec":{"hard":{"secrets":"0"}}`), core("Secret", "secrets", "a", "s", "")},
			[]string{core("ConfigMap", "configmaps", "a", "t", "")},
			[]string{"warning quota-exceeded resourcequotas/a/q"}},
		{"quota of the archive", []string{space}, []string{core("ResourceQuota", "resourcequotas", "a", "q",
			`,"spec":{"hard":{"secrets":"0"}}`), core("Secret", "secrets", "a", "t", "")},
			[]string{"warning quota-exceeded resourcequotas/a/q"}},
		{"definition in deletion", []string{space, strings.Replace(widgets("v1"), `\"uid`,
			`\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"uid`, 1)}, []string{widget("v1")},
			[]string{"error crd-terminating apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"}},
		{"volume handle", []string{space, csi("one", "d", "h"), csi("two", "d", "other")},
			[]string{csi("three", "d", "h"), csi("four", "e", "h")},
			[]string{"error volume-twice persistentvolumes/three"}},
		{"encrypted", []string{space}, []string{"put /registry/secrets/a/s k8s:enc:aescbc:v1:key1:abc"},
			[]string{"error encrypted secrets/a/s"}},
	}
}

// policyOf returns a policy about the creation of Secrets: a validating one denies those whose name
// is not good, a mutating one adds a label.
func policyOf(kind, more string) string {
	does := `"validations":[{"expression":"object.metadata.name == 'good'"}]`
	if kind == "Mutating" {
		does = `"reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":` +
			`"[JSONPatch{op: 'add', path: '/metadata/labels', value: {'x': 'y'}}]"}}]`
	}
	return object("admissionregistration.k8s.io/v1", kind+"AdmissionPolicy",
		strings.ToLower(kind)+"admissionpolicies", "", "p", "", `,"spec":{"failurePolicy":"Fail","matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],`+
			`"resources":["secrets"],"operations":["CREATE"]}]},`+does+more+`}`)
}

func bindingOf(kind string) string {
	return object("admissionregistration.k8s.io/v1", kind+"AdmissionPolicyBinding",
		strings.ToLower(kind)+"admissionpolicybindings", "", "b", "",
		`,"spec":{"policyName":"p","validationActions":["Deny"]}`)
}

func csi(name, driver, handle string) string {
	return core("PersistentVolume", "persistentvolumes", "", name,
		`,"spec":{"csi":{"driver":"`+driver+`","volumeHandle":"`+handle+`"}}`)
}

// TestConflicts checks that each conflict refuses an import, and that --allow imports all objects.
func TestConflicts(t *testing.T) {
	for _, tt := range conflicts() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.in == nil {
				tt.in = []string{core("Node", "minions", "", "n", "")}
			}
			in, from := build(t, tt.in...), build(t, tt.from...)
			r, _, err := importing(t, in, from, "", "not-an-archive")
			require.Equal(t, tt.want, problems(r), "%v", r.Problems)
			refused := slices.ContainsFunc(tt.want, func(line string) bool { return strings.HasPrefix(line, "error ") })
			require.Equal(t, refused, err != nil, "%v", err)
			r, out, err := importing(t, in, from, "", finding.Allowable(codes())...)
			require.NoError(t, err, "%v", r.Problems)
			for key, is := range live(t, from) {
				if tt.name != "other value" {
					require.Equal(t, is, live(t, out)[key], key)
				}
			}
		})
	}
}
