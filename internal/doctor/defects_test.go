package doctor

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/etcdshift/etcdshift/finding"
)

// defect is a finding, with records that cause it and records that do not.
type defect struct {
	code    *finding.Code
	with    []record
	key     string // below /registry/
	says    string
	without []record
}

// also stands among the records without a defect for another finding that they have.
func also(code *finding.Code) record { return record{value: code.Name} }

// sound returns the records without the defect, and the names of their other findings.
func (d *defect) sound() (records []record, others []string) {
	records, others = healthy(), finding.Names(codeBumpRevision, codeEtcdVersion)
	for _, r := range d.without {
		if r.key == "" {
			others = append(others, r.value)
		} else {
			records = append(records, r)
		}
	}
	slices.Sort(others)
	return records, others
}

// TestUnreadable: no check calls an unreadable object missing. One object of each type at a time is
// unreadable: it has a finding, and there are no others but those of the readable records. A row
// without sound records is run with its defect.
func TestUnreadable(t *testing.T) {
	on := base(t)
	may := finding.Names(finding.Undecodable, codeOwnerUnchecked, // both say so
		codeConversionNeeded, codeConversion, codeWebhookDeadlock, codeWebhookCore) // of any Service
	for _, tc := range defects() {
		records, others := tc.sound()
		if tc.without == nil {
			records = append(records, tc.with...)
			found := examined(t, written(t, on, records...), Options{}).Counts
			others = finding.Names(slices.Collect(maps.Keys(found))...)
		}
		last := map[string]int{} // by folder
		for i, r := range records {
			last[path.Dir(r.key)] = i
		}
		for _, i := range last {
			damaged := slices.Clone(records)
			damaged[i].value = "unreadable"
			for _, f := range examined(t, written(t, on, damaged...), Options{}).Findings {
				if !slices.Contains(slices.Concat(others, may), f.Code.Name) {
					t.Errorf("the check of %q must ask d.unread: %s: %s, but %s is there, and unreadable", f.Code.Name,
						f.Key, f.Reason, damaged[i].key)
				}
			}
		}
	}
}

const (
	crds, teamWidgets = "apiextensions.k8s.io/customresourcedefinitions/widgets.example.com",
		"example.com/widgets/team/"
	deletionMeta = `,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["example.com/keep"]}`
)

// portCRD is the definition of Widgets with a schema.
func portCRD() record {
	return record{crds, strings.ReplaceAll(crd("", noConversion, `["v1"]`).value, `"storage":true}`,
		`"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",`+
			`"properties":{"size":{"type":"integer"},`+
			`"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],`+
			`"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},`+
			`"port":{"type":"integer"}}}}}}}}}}`)}
}

func heartbeat(name, at string) record {
	return object("leases/kube-node-lease/"+name, "coordination.k8s.io/v1", "Lease",
		`},"spec":{"renewTime":"`+at+`.000000Z"}`)
}

func token(account, id string) record {
	return object("secrets/team/token", "v1", "Secret", `,"annotations":{"kubernetes.io/service-account.name":"`+
		account+`","kubernetes.io/service-account.uid":"`+id+
		`"}},"type":"kubernetes.io/service-account-token","data":{"token":"eA=="}`)
}

func aggregated(service, condition string) record {
	return apiServiceObject("v1.metrics.example.org",
		`{"group":"metrics.example.org","version":"v1","service":{"namespace":"team","name":"`+service+`"}}`,
		`{"conditions":[{"type":"Available","status":"`+condition+`","reason":"Why"}]}`)
}

// idle returns Endpoints of the Service team/hook without a ready address.
func idle() record {
	return object("services/endpoints/team/hook", "v1", "Endpoints",
		`},"subsets":[{"notReadyAddresses":[{"ip":"10.0.0.1"}]}]`)
}

// ready returns an EndpointSlice of the Service team/hook with a ready address.
func ready() record {
	return object("endpointslices/team/hook-abc", "discovery.k8s.io/v1", "EndpointSlice",
		`,"labels":{"kubernetes.io/service-name":"hook"}},"addressType":"IPv4",`+
			`"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true}}]`)
}

// address returns a Service with a cluster IP and a node port.
func address(name, ip string, port int) record {
	return object("services/specs/team/"+name, "v1", "Service",
		fmt.Sprintf(`},"spec":{"clusterIP":%q,"ports":[{"port":80,"nodePort":%d}]}`, ip, port))
}

// ipAddress returns the IPAddress of a Service's cluster IP.
func ipAddress(service string) record {
	return object("ipaddresses/10.96.7.7", "networking.k8s.io/v1", "IPAddress",
		fmt.Sprintf(`},"spec":{"parentRef":{"group":"","resource":"services","namespace":"team","name":%q}}`, service))
}

// held returns a Widget held by a finalizer.
func held() record { return object(teamWidgets+"x", "example.com/v1", "Widget", deletionMeta) }

// alias returns the Service team/alias of type ExternalName.
func alias(of string) record {
	return object("services/specs/team/alias", "v1", "Service",
		`},"spec":{"type":"ExternalName","externalName":"`+of+`"}`)
}

func only(records ...record) []record { return records }

// defects returns the defects of any restore.
func defects() []defect {
	return slices.Concat(objectDefects(), definitionDefects(), ownerDefects(), deletionDefects(), webhookDefects(),
		apiServiceDefects(), clusterDefects(), releaseDefects())
}

// objectDefects are defects in the value of one object.
func objectDefects() []defect {
	return []defect{
		{codeStrayKeys, only(record{"strange.and/a/b/c/d/e/f", "x"}, record{"strange.and/a/b/c/d/e/g", "x"}),
			"strange.and/a/b/c/d/e/f", "2 keys below /registry that its layout does not explain", nil},
		{finding.Undecodable, only(record{"configmaps/team/a", "nothing"}), "configmaps/team/a", "",
			only(object("configmaps/team/a", "v1", "ConfigMap", ""))},
		{finding.Undecodable, only(record{teamWidgets + "a", "{"}), teamWidgets + "a", "", only(widget("a", "v1"))},
		{finding.Undecodable, only(record{"configmaps/team/a",
			"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x7f"}), "configmaps/team/a", "", nil},
		{finding.Undecodable, only(record{"clusterroles/x",
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":1}}`}),
			"clusterroles/x", "metadata", nil},
		{finding.Undecodable, only(object("configmaps/team/a", "a/b/c", "ConfigMap", "")), "configmaps/team/a",
			"apiVersion", nil},
		{finding.Undecodable, only(apiServiceObject("v1.apps", `{"group":7}`, `{}`)),
			"apiregistration.k8s.io/apiservices/v1.apps", "spec.group: a field has a value that its type can't have",
			nil},
		{finding.Undecodable, only(record{"secrets/team/a", object("configmaps/team/a", "v1", "ConfigMap", "").value}),
			"secrets/team/a", "a v1 ConfigMap, under the key of a Secret", nil},
		{finding.Undecodable, only(record{"secrets/team/a",
			"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0b\x0a\x09\x0a\x01a\x1a\x04team"}), "secrets/team/a",
			"a v1 ConfigMap, under the key of a Secret", nil},
		{finding.Undecodable, only(object("configmaps/team/a", "v1", "ConfigMap", `},"data":{"a":{"b":"hunter2"}}`)),
			"configmaps/team/a", "data: a field has a value that its type can't have", nil},
		{finding.Undecodable, only(object(teamWidgets+"a", "other.org/v1", "Widget", "")), teamWidgets + "a",
			"a other.org/v1 Widget, under the key of one of widgets.example.com", nil},
		{finding.Undecodable, only(object("h.example/widgets/team/a", "v1", "ConfigMap", "")),
			"h.example/widgets/team/a", "a v1 ConfigMap, under the key of one of widgets.h.example", nil},
		{finding.Undecodable, only(object(teamWidgets+"a", "example.com/v1", "Gadget", "")), teamWidgets + "a",
			"1 object in the folder of widgets.example.com is of kind Gadget", nil},
		{codeBadMetadata, only(record{teamWidgets + "a",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","annotations":{"x":1}}}`}),
			teamWidgets + "a", "annotations", only(widget("a", "v1"))},
		{codeUnknownKind, only(record{"podsecuritypolicy/a",
			"k8s\x00\x0a\x23\x0a\x0epolicy/v1beta1\x12\x11PodSecurityPolicy\x12\x05\x0a\x03\x0a\x01a"}),
			"podsecuritypolicy/a", "", nil},
		{codeKeyMismatch, only(record{"configmaps/team/a", object("configmaps/team/b", "v1", "ConfigMap", "").value}),
			"configmaps/team/a", `named "b"`, only(object("configmaps/team/a", "v1", "ConfigMap", ""))},
		{codeKeyMismatch, only(record{"configmaps/team/a", object("configmaps/default/a", "v1", "ConfigMap",
			"").value}), "configmaps/team/a", `namespace "default"`, nil},
		{codeDuplicateUID, only(object("configmaps/team/a", "v1", "ConfigMap", `,"uid":"`+uidOf(1)+`"}`)),
			"configmaps/team/a", "widgets.example.com in namespace team",
			only(object("configmaps/team/a", "v1", "ConfigMap", `,"uid":"`+uidOf(3)+`"}`))},
		{codeTooLarge, only(object("configmaps/team/a", "v1", "ConfigMap",
			`},"data":{"x":"`+strings.Repeat("x", 1600<<10)+`"}`)), "configmaps/team/a", "1572864",
			only(object("configmaps/team/a", "v1", "ConfigMap", `},"data":{"x":"`+strings.Repeat("x", 1500<<10)+`"}`),
				also(codeNearLimit))},
		{codeNearLimit, only(object("configmaps/team/a", "v1", "ConfigMap",
			`},"data":{"x":"`+strings.Repeat("x", 1450<<10)+`"}`)), "configmaps/team/a", "1572864",
			only(object("configmaps/team/a", "v1", "ConfigMap", `},"data":{"x":"`+strings.Repeat("x", 1000<<10)+`"}`))},
		{codeNamespaceGone, only(object("configmaps/lost/a", "v1", "ConfigMap", ""),
			object("pods/lost/a", "v1", "Pod", ""), object("pods/lost/b", "v1", "Pod", "")), "configmaps/lost/a",
			"3 objects of namespace lost, which is not there: 2 pods, 1 configmaps",
			only(object("configmaps/kube-public/a", "v1", "ConfigMap", ""))},
		{codeEncryptionKeys, only(record{"secrets/team/a", "k8s:enc:aescbc:v1:k1:0123456789"}), "secrets/team/a",
			"1 value encrypted by aescbc:v1:k1", only(object("secrets/team/a", "v1", "Secret", ""))},
		{codeMixedEncryption, only(record{"secrets/team/a", "k8s:enc:aescbc:v1:k1:0123456789"},
			object("secrets/team/b", "v1", "Secret", "")), "secrets/team/a",
			"secrets: aescbc:v1:k1: 1 object, in the clear: 1 object",
			only(record{"secrets/team/a", "k8s:enc:aescbc:v1:k1:0123456789"}, also(codeEncryptionKeys))},
	}
}

// definitionDefects are defects of CustomResourceDefinitions and custom resources.
func definitionDefects() []defect {
	return []defect{
		{codeCRDUnreadable,
			only(record{crds,
				`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
					`"metadata":{"name":"widgets.example.com"},"spec":{"versions":7}}`}), crds, "", nil},
		{codeVersionUnlisted, only(widget("old", "v1alpha1"), widget("old2", "v1alpha1")), teamWidgets + "old",
			"2 objects of widgets.example.com stored at v1alpha1, which is no version of the definition: no server " +
				"reads them, nor lists the kind; --map example.com/v1alpha1=v1", only(widget("old", "v1beta1"),
				also(codeListLacks))},
		{codeListInvalid, only(crd("", noConversion, `["v1","v0"]`)), crds,
			`status.storedVersions[1]: "v0" must appear in spec.versions`,
			only(crd("", noConversion, `["v1","v1beta1"]`), also(codeListExtra))},
		{codeListLacks, only(widget("old", "v1beta1")), crds, `lacks "v1beta1", at which 1 object is`,
			only(widget("old", "v1beta1"), crd("", noConversion, `["v1","v1beta1"]`), also(codeListNeeded))},
		{codeListNeeded, only(crd("", noConversion, `["v1beta1","v1"]`), widget("old", "v1beta1")), crds,
			`status.storedVersions[0] is "v1beta1", at which 1 object is stored`,
			only(crd("", noConversion, `["v1beta1","v1"]`), also(codeListExtra))},
		{codeListExtra, only(crd("", noConversion, `["v1beta1","v1"]`)), crds, `"v1beta1"`,
			only(crd("", noConversion, `["v1beta1","v1"]`), widget("old", "v1beta1"), also(codeListNeeded))},
		{codeManagedVersion, only(object(teamWidgets+"a", "example.com/v1", "Widget",
			`,"managedFields":[{"manager":"m","apiVersion":"example.com/v1alpha1"}]}`)), teamWidgets + "a",
			"of 1 object of widgets.example.com name example.com/v1alpha1",
			only(object(teamWidgets+"a", "example.com/v1", "Widget",
				`,"managedFields":[{"manager":"m","apiVersion":"example.com/v1beta1","operation":"Update",`+
					`"fieldsType":"FieldsV1"}]}`))},
		{CodeUpdateRefused, only(portCRD(), object(teamWidgets+"a", "example.com/v1", "Widget",
			`},"spec":{"ports":[{"port":1}]}`)), teamWidgets + "a",
			"every update is refused for spec.ports[0].name (FieldValueRequired)",
			only(portCRD(), object(teamWidgets+"a", "example.com/v1", "Widget",
				`},"spec":{"ports":[{"name":"a"}],"size":"wrong"}`), also(CodeApplyRefused))},
		{CodeUpdateRefused, only(portCRD(), object(teamWidgets+"a", "example.com/v1beta1", "Widget",
			`,"labels":{"a":"not allowed"}}`)), teamWidgets + "a", "metadata.labels",
			only(portCRD(), object(teamWidgets+"a", "example.com/v1beta1", "Widget", `,"labels":{"a":"b"}}`),
				also(codeListLacks))},
		{CodeApplyRefused, only(portCRD(), object(teamWidgets+"a", "example.com/v1", "Widget",
			`},"spec":{"size":"hunter2"}`)), teamWidgets + "a", "its fields are not those of the schema: spec.size",
			only(portCRD(), object(teamWidgets+"a", "example.com/v1", "Widget", `},"spec":{"size":1}`))},
		{codeHiddenField, only(portCRD(), object(teamWidgets+"a", "example.com/v1", "Widget",
			`},"spec":{"size":1,"turbo":{"factor":3}}`)), teamWidgets + "a",
			"the schema of its version lacks spec.turbo", only(portCRD(),
				object(teamWidgets+"a", "example.com/v1", "Widget", `},"spec":{"size":1,"gone":null}`))},
		{CodeApplyRefused, only(portCRD(), object(teamWidgets+"a", "example.com/v1", "Widget",
			`,"managedFields":[{"manager":"m","apiVersion":"example.com/v1","operation":"Mend"}]}`)), teamWidgets + "a",
			"an entry of metadata.managedFields is none that a server reads",
			only(portCRD(), object(teamWidgets+"a", "example.com/v1", "Widget",
				`,"managedFields":[{"manager":"m","apiVersion":"example.com/v0","operation":"Update",`+
					`"fieldsType":"FieldsV1"}]}`), also(codeManagedVersion))},
		{codeOrphans, only(object("gone.example.com/things/team/a", "gone.example.com/v1", "Thing", "")),
			"gone.example.com/things/team/a", "1 object of things.gone.example.com", nil},
		{codeCRDTerminating,
			only(
				crd(
					`,"deletionTimestamp":"2026-01-01T00:00:00Z",`+
						`"finalizers":["customresourcecleanup.apiextensions.k8s.io"]`, noConversion, `["v1"]`)), crds,
			"finalizers: customresourcecleanup.apiextensions.k8s.io; 1 object left", nil},
		{codeConversionGone, only(crd("", fmt.Sprintf(ofTeam, "gone"), `["v1"]`)), crds, "Service team/gone",
			only(record{crds, strings.Replace(crd("", fmt.Sprintf(ofTeam, "gone"), `["v1"]`).value,
				`{"name":"v1beta1","served":true,"storage":false},`, "", 1)})},
		{codeConversionNeeded, only(crd("", fmt.Sprintf(ofTeam, "hook"), `["v1","v1beta1"]`), widget("old", "v1beta1")),
			crds, "1 object is not at the storage version v1", only(crd("", fmt.Sprintf(ofTeam, "hook"), `["v1"]`),
				also(codeConversion))},
		{codeConversion, only(crd("", fmt.Sprintf(ofTeam, "hook"), `["v1"]`)), crds,
			"Service team/hook converts widgets.example.com between v1beta1, v1", nil},
		{codeConversionNeeded, only(alias("hook.team.svc"), crd("", fmt.Sprintf(ofTeam, "alias"), `["v1","v1beta1"]`),
			widget("old", "v1beta1")), crds, "Service team/alias", only(alias("hooks.example.com"),
			crd("", fmt.Sprintf(ofTeam, "alias"), `["v1","v1beta1"]`), widget("old", "v1beta1"), also(codeListNeeded))},
		{codeConversion, only(alias("hook.team.svc"), crd("", fmt.Sprintf(ofTeam, "alias"), `["v1"]`)), crds,
			"Service team/alias", only(alias("svc.example.com"), crd("", fmt.Sprintf(ofTeam, "alias"), `["v1"]`))},
	}
}

// ownerDefects are defects of owner references.
func ownerDefects() []defect {
	return []defect{
		{codeOwnerGone, only(owned1("configmaps/team/a", "ConfigMap", "v1", "Pod", uidOf(9))), "configmaps/team/a",
			"Pod o (" + uidOf(9) + ")", only(owned1("configmaps/team/a", "ConfigMap", "example.com/v1", "Widget",
				uidOf(1)), object("gone.example.com/things/team/a", "gone.example.com/v1", "Thing",
				`,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"o","uid":"`+uidOf(9)+`"}]}`),
				also(codeOrphans))},
		{codeOwnerGone, only(owned1("configmaps/default/a", "ConfigMap", "example.com/v1", "Widget", uidOf(1))),
			"configmaps/default/a", "is in namespace team", nil},
		{codeOwnerUnresolvable, only(owned1("configmaps/team/a", "ConfigMap", "example.com/v1alpha1", "Widget",
			uidOf(1))), "configmaps/team/a", "a Widget of example.com/v1alpha1",
			only(owned1("configmaps/team/a", "ConfigMap", "example.com/v1beta1", "Widget", uidOf(1)))},
		{codeOwnerNamespaced, only(owned1("minions/a", "Node", "example.com/v1", "Widget", uidOf(1))), "minions/a",
			"a Widget, which is namespaced", nil},
		{codeOwnerUnchecked, only(aggregated("hook", "True"),
			owned1("configmaps/team/a", "ConfigMap", "metrics.example.org/v1", "Metric", uidOf(9))),
			"configmaps/team/a", "1 object with an owner of kind Metric of metrics.example.org/v1", nil},
		{codeOwnerUnchecked, only(record{"secrets/team/s", "k8s:enc:aescbc:v1:k1:0123456789"},
			owned1("configmaps/team/a", "ConfigMap", "v1", "Secret", uidOf(9))), "configmaps/team/a", "Secret", nil},
	}
}

// deletionDefects are defects of deletions.
func deletionDefects() []defect {
	claim := func(meta string) record {
		return object("persistentvolumeclaims/team/data", "v1", "PersistentVolumeClaim",
			`,"uid":"`+uidOf(5)+`"`+meta+`},"spec":{"volumeName":"v"}`)
	}
	dying := claim(`,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["kubernetes.io/pvc-protection"]`)
	volume := func(policy, meta string) record {
		return object("persistentvolumes/v", "v1", "PersistentVolume",
			meta+`},"spec":{"persistentVolumeReclaimPolicy":"`+policy+
				`","claimRef":{"namespace":"team","name":"data","uid":"`+uidOf(5)+`"}}`)
	}
	user := object("pods/team/db", "v1", "Pod",
		`},"spec":{"nodeName":"n1","volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}]}`)
	const since = `,"deletionTimestamp":"2026-01-01T00:00:00Z"}`
	return []defect{
		{codeDeletingVolume, only(dying, volume("Delete", ""), user), "persistentvolumeclaims/team/data",
			"since 2026-01-01T00:00:00Z; finalizers: kubernetes.io/pvc-protection; it is deleted with the last " +
				"Pod that uses it: /registry/pods/team/db, and so is the data of PersistentVolume v: the reclaim " +
				"policy is Delete", only(claim(""), volume("Delete", ""), user)},
		{codeDeletingVolume, only(dying, volume("Retain", "")), "persistentvolumeclaims/team/data",
			"no Pod uses it, so it is deleted at once; PersistentVolume v keeps its data", nil},
		{codeDeletingVolume, only(dying, record{"pods/team/db", "unreadable"}), "persistentvolumeclaims/team/data",
			"it is deleted with the last Pod that uses it, which may be an unreadable one", nil},
		{codeDeletingVolume, only(claim(""), volume("Delete", since[:len(since)-1])), "persistentvolumes/v",
			"it is deleted with its claim team/data, and so is its data: the reclaim policy is Delete", nil},
		{codeDeletingVolume, only(volume("Delete", "")), "persistentvolumes/v",
			"its claim team/data is gone and its reclaim policy is Delete: it is deleted with its data",
			only(volume("Retain", ""))},
		{codeDeleting, only(held()), teamWidgets + "x",
			"finalizers: example.com/keep; it is deleted when the controllers of its finalizers have finished",
			only(widget("x", "v1"))},
		{codeDeleting, only(object("volumeattachments/va", "storage.k8s.io/v1", "VolumeAttachment", deletionMeta)),
			"volumeattachments/va", "the attacher detaches the volume", nil},
		{codeDeleting, only(object("minions/n1", "v1", "Node", since)), "minions/n1",
			"finalizers: none; it is deleted with its Pods", nil},
		{codeDeleting, only(object("pods/team/p", "v1", "Pod", since+`,"spec":{"nodeName":"n1"}`)), "pods/team/p",
			"the kubelet of node n1 ends it", nil},
		{codeDeleting, only(object("services/specs/team/s", "v1", "Service",
			`,"deletionTimestamp":"2026-01-01T00:00:00Z",`+
				`"finalizers":["service.kubernetes.io/load-balancer-cleanup"]}`)), "services/specs/team/s",
			"the cloud controller deletes its load balancer", nil},
		{codeDeleting, only(object("deployments/team/d", "apps/v1", "Deployment",
			`,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["foregroundDeletion"]}`)), "deployments/team/d",
			"deletes its dependents, then the object", nil},
		{codeNamespaceTerminating, only(object("namespaces/team", "v1", "Namespace",
			`,"deletionTimestamp":"2026-01-01T00:00:00Z"}`), held(),
			object("configmaps/default/y", "v1", "ConfigMap", deletionMeta)), "namespaces/team",
			"; held by example.com/keep of 1 object (/registry/example.com/widgets/team/x)", nil},
		{codeCRDTerminating, only(crd(`,"deletionTimestamp":"2026-01-01T00:00:00Z"`, noConversion, `["v1"]`), held()),
			crds, "finalizers: none; 2 objects left; held by example.com/keep of 1 object " +
				"(/registry/example.com/widgets/team/x)", nil},
		{codeNamespaceTerminating, only(object("namespaces/team", "v1", "Namespace",
			`,"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"finalizers":["kubernetes"]}`),
			aggregated("gone", "False")), "namespaces/team",
			"since 2026-01-01T00:00:00Z; finalizers: kubernetes; content: 1 endpoints, 1 pods, 1 serviceaccounts, 1 " +
				"services, 1 widgets.example.com; APIServices that stop every deletion: v1.metrics.example.org", nil},
	}
}

// clusterDefects are defects of nodes, API servers and tokens.
func clusterDefects() []defect {
	return []defect{
		{codeMasterLease, only(object("masterleases/10.0.0.9", "v1", "Endpoints", "")), "masterleases/10.0.0.9",
			"it has no lease", nil},
		{codeMemberRemoval, only(object("minions/n1", "v1", "Node",
			`,"annotations":{"etcd.k3s.cattle.io/remove":"True"}}`)), "minions/n1", `etcd.k3s.cattle.io/remove: "True"`,
			nil},
		{codeMemberRemoval, only(object("minions/n1", "v1", "Node",
			`,"annotations":{"etcd.rke2.cattle.io/remove":"true"}}`)), "minions/n1",
			`etcd.rke2.cattle.io/remove: "true"`, only(object("minions/n1", "v1", "Node",
				`,"annotations":{"etcd.rke2.cattle.io/remove":"false","etcd.k3s.cattle.io/removed":"true"}}`))},
		{codeAddressTwice, only(address("a", "10.96.7.7", 0), address("b", "10.96.7.7", 0)), "services/specs/team/a",
			"cluster IP 10.96.7.7 is that of the Services team/a, team/b",
			only(address("a", "10.96.7.7", 0), address("b", "10.96.7.8", 0))},
		{codeAddressTwice, only(address("a", "None", 30007), address("b", "None", 30007)), "services/specs/team/a",
			"node port 30007 is that of the Services team/a, team/b",
			only(address("a", "None", 30007), address("b", "None", 30008))},
		{codeAddressLeft, only(address("a", "10.96.7.7", 0), ipAddress("b")), "ipaddresses/10.96.7.7",
			"its Service team/b is not there", only(address("a", "10.96.7.7", 0), ipAddress("a"))},
		{codeAddressLeft, only(address("a", "10.96.7.7", 0), address("b", "10.96.7.8", 0), ipAddress("b")),
			"ipaddresses/10.96.7.7", "its Service team/b has 10.96.7.8",
			only(address("a", "10.96.7.7", 0), address("b", "None", 0), ipAddress("b"))},
		{codeNodeSilent, only(object("minions/n1", "v1", "Node", ""), heartbeat("n1", "2026-01-01T00:00:00"),
			heartbeat("n2", "2026-01-01T01:00:00")), "minions/n1", "1h0m0s before",
			only(object("minions/n1", "v1", "Node", ""), heartbeat("n1", "2026-01-01T00:59:00"),
				heartbeat("n2", "2026-01-01T01:00:00"))},
		{codeTokenWithoutUse, only(token("gone", uidOf(2))), "secrets/team/token", "ServiceAccount gone is not there",
			only(token("sa", uidOf(2)))},
		{codeTokenWithoutUse, only(token("sa", uidOf(7))), "secrets/team/token", "is another one now", nil},
	}
}
