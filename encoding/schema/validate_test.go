package schema

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// verdict is an object and the server's errors on its creation; crd names the file in testdata. A
// test sends the same table to a real server.
type verdict struct{ name, crd, object, want string }

const (
	poolHead   = `{"apiVersion":"projectcalico.org/v3","kind":"IPPool","metadata":{"name":"p"},"spec":`
	policyHead = `{"apiVersion":"projectcalico.org/v3","kind":"NetworkPolicy","metadata":{"name":"p",` +
		`"namespace":"default"},"spec":`
	widgetHead = `{"apiVersion":"demo.example.com/v1beta1","kind":"Widget","metadata":{"name":"p",` +
		`"namespace":"default"},"spec":`
	pool   = "ippools.etcd"
	policy = "networkpolicies.etcd"
	widget = "crd.etcd"
)

func verdicts() []verdict {
	return []verdict{
		{"good pool", pool, poolHead +
			`{"cidr":"10.0.0.0/16","blockSize":26,"ipipMode":"Never","vxlanMode":"Always","natOutgoing":true,` +
			`"allowedUses":["Workload","Tunnel"]}}`, ""},
		{"good IPv6 pool", pool, poolHead + `{"cidr":"fd00:10:244::/64"}}`, ""},
		{"unmasked CIDR", pool, poolHead + `{"cidr":"10.0.0.1/16"}}`, "IPPool CIDR must be strictly masked"},
		{"no CIDR at all", pool, poolHead + `{"cidr":"ten"}}`, "spec.cidr in body must be of type cidr"},
		{"required", pool, poolHead + `{"blockSize":26}}`, "spec.cidr: Required value"},
		{"enum hides the rules", pool, poolHead + `{"cidr":"10.0.0.1/16","ipipMode":"Sometimes"}}`,
			"some validation rules were not checked"},
		{"duplicate in a set", pool, poolHead + `{"cidr":"10.0.0.0/16","allowedUses":["Workload","Workload"]}}`,
			`spec.allowedUses[1]: Duplicate value: "Workload"`},
		{"rule over two fields", pool, poolHead + `{"cidr":"10.0.0.0/16","ipipMode":"Always","vxlanMode":"Always"}}`,
			"cannot both be enabled"},
		{"rule on a function", pool, poolHead + `{"cidr":"10.0.0.0/16","blockSize":116}}`, "blockSize must be between"},
		{"wrong type", pool, poolHead + `{"cidr":"10.0.0.0/16","blockSize":"26"}}`,
			`spec.blockSize in body must be of type integer: "string"`},
		{"several errors", pool, poolHead + `{"cidr":"10.0.0.1/16","blockSize":116,"allowedUses":["Tunnel","Tunnel"]}}`,
			"Duplicate value"},
		{"good policy", policy, policyHead +
			`{"tier":"default","selector":"a == 'b'","types":["Ingress"],"ingress":[{"action":"Allow",` +
			`"protocol":"TCP","source":{"nets":["10.0.0.0/8"]},"destination":{"ports":[80,"90:91"]}}]}}`, ""},
		{"duplicate types", policy, policyHead + `{"types":["Ingress","Ingress"]}}`,
			`spec.types[1]: Duplicate value: "Ingress"`},
		{"duplicate nets deep inside", policy, policyHead +
			`{"egress":[{"action":"Deny"},{"action":"Deny","destination":{"nets":["10.0.0.0/8","10.0.0.0/8"]}}]}}`,
			`spec.egress[1].destination.nets[1]: Duplicate value`},
		{"rule in a list item", policy, policyHead + `{"ingress":[{"action":"Allow","icmp":{"code":1}}]}}`,
			"spec.ingress[0]"},
		{"int-or-string", policy, policyHead + `{"ingress":[{"action":"Allow","protocol":[1]}]}}`,
			"spec.ingress[0].protocol"},
		{"good widget", widget, widgetHead +
			`{"size":9007199254740993,"ios":"80%","tmpl":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}}}`,
			""},
		{"embedded resource without kind", widget, widgetHead + `{"tmpl":{"apiVersion":"v1"}}}`,
			"spec.tmpl.kind: Required value"},
		{"embedded resource with a bad label", widget, widgetHead +
			`{"tmpl":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a b":"c"}}}}}`,
			"spec.tmpl.metadata.labels"},
		{"not an integer", widget, widgetHead + `{"size":1.5}}`, "spec.size in body must be of type integer"},
		{"null that stays is checked", widget, widgetHead + `{"list":[null]}}`, "spec.list[0]"},
	}
}

func TestValidate(t *testing.T) {
	for _, c := range verdicts() {
		t.Run(c.name, func(t *testing.T) {
			crd := readCRD(t, c.crd)
			v := version(t, crd, crd.StorageVersion())
			obj := object(t, c.object)
			require.Empty(t, v.Prune(obj))
			require.NoError(t, v.Default(obj))
			before := text(t, obj)
			errs := v.Validate(t.Context(), obj)
			require.Equal(t, before, text(t, obj), "Validate changes nothing")
			if c.want == "" {
				require.Empty(t, errs)
				return
			}
			require.Contains(t, errs.ToAggregate().Error(), c.want)
		})
	}
}

// TestValidateThings checks that creates skip update rules, that list maps have each key once, and
// that unknown formats are not checked.
func TestValidateThings(t *testing.T) {
	ruled := `"a":{"type":"integer","x-kubernetes-validations":[{"rule":"self == oldSelf"},{"rule":"self < 9"}]}`
	keyed := `"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}`
	formats :=
		`"at":{"type":"string","format":"date-time"},"ip":{"type":"string","format":"ipv4"},"odd":{"type":"string",` +
			`"format":"no-such"}`
	for _, c := range []struct {
		schema, content string
		want            []string
	}{
		{ruled, `"a":3`, nil},
		{ruled, `"a":9`, []string{"a: Invalid value"}},
		{keyed, `"l":[{"k":"a"},{"k":"b"},{"k":"a"}]`, []string{"l[2]: Duplicate value"}},
		{formats, `"at":"yesterday","ip":"1.2.3","odd":"x"`,
			[]string{"at in body must be of type date-time", "ip in body must be of type ipv4"}},
	} {
		v := thing(t, `{"type":"object","properties":{`+c.schema+`}}`)
		errs := v.Validate(t.Context(), object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{},`+
			c.content+`}`))
		require.Len(t, errs, len(c.want), c.content)
		for _, want := range c.want {
			require.ErrorContains(t, errs.ToAggregate(), want)
		}
	}
}

func TestTypeMeta(t *testing.T) {
	v := version(t, readCRD(t, widget), "v1beta1")
	errs := v.Validate(t.Context(),
		object(t, `{"apiVersion":"demo.example.com/v1alpha1","kind":"Gadget","metadata":{"labels":{"a":5}}}`))
	require.Len(t, errs, 3)
	require.Equal(t, `kind: Invalid value: "Gadget": must be Widget`, errs[0].Error())
	require.Equal(t, `apiVersion: Invalid value: "demo.example.com/v1alpha1": must be demo.example.com/v1beta1`,
		errs[1].Error())
	require.Equal(t, "metadata", errs[2].Field)
}

func TestScale(t *testing.T) {
	crd := parseCRD(t, crdOf(`{"name":"v1","served":true,"storage":true,"subresources":{"scale":
{"specReplicasPath":".spec.n","statusReplicasPath":".status.n","labelSelectorPath":".status.s"}}}`, ""))
	v := version(t, crd, "v1")
	require.Nil(t, v.spec.Subresources.Status)
	for spec, want := range map[string]string{
		`"spec":{"n":3},"status":{"n":0,"s":"a=b"}`: "",
		`"spec":{}`:                  "",
		`"spec":{"n":-1}`:            ".spec.n: Invalid value: -1: should be a non-negative integer",
		`"status":{"n":10000000000}`: "should be less than or equal to 2147483647",
		`"spec":{"n":"three"}`:       "is of the type string, expected int64",
		`"status":{"s":["a=b"]}`:     ".status.s: Invalid value",
	} {
		errs := v.Validate(t.Context(), object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{},`+spec+
			`}`))
		if want == "" {
			require.Empty(t, errs, spec)
			continue
		}
		require.Len(t, errs, 1, spec)
		require.Contains(t, errs[0].Error(), want)
	}
}

func TestConcurrentUse(t *testing.T) {
	crd := readCRD(t, pool)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			v, err := crd.Version("v3")
			if err != nil {
				t.Error(err)
				return
			}
			for _, c := range verdicts()[:11] {
				obj, _ := tryObject([]byte(c.object))
				v.Prune(obj)
				require.NoError(t, v.Default(obj))
				if errs := v.Validate(t.Context(), obj); (len(errs) == 0) != (c.want == "") {
					t.Errorf("%s: %v", c.name, errs)
				}
			}
		})
	}
	wait.Wait()
}

func BenchmarkValidate(b *testing.B) {
	crd := readCRD(b, policy)
	v := version(b, crd, "v3")
	obj := object(b, verdicts()[11].object)
	for b.Loop() {
		v.Prune(obj)
		require.NoError(b, v.Default(obj))
		require.Empty(b, v.Validate(b.Context(), obj))
	}
}
