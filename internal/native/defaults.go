package native

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Same reports whether a server treats two objects of a kind as equal: zero values, empty lists and
// defaults equal missing fields, and "0.1" equals "100m". In [exact] kinds an empty list or map
// does not equal a missing one. For kinds unknown to this build the content must be equal.
func Same(gvk schema.GroupVersionKind, a, b map[string]any) bool {
	first, known := defaulted(gvk, a)
	second, too := defaulted(gvk, b)
	if !known || !too {
		return reflect.DeepEqual(a, b)
	}
	if slices.Contains(exact(), gvk.Kind) {
		return reflect.DeepEqual(first, second)
	}
	return equality.Semantic.DeepEqual(first, second)
}

// exact lists the kinds whose updates a server compares with reflect.DeepEqual. Source: strategies
// below pkg/registry of Kubernetes 1.36.
func exact() []string {
	return []string{"NetworkPolicy", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
}

// defaulted returns the typed object of content with its defaults. It returns false for an unknown
// kind, and for content that does not fit the kind.
func defaulted(gvk schema.GroupVersionKind, content map[string]any) (runtime.Object, bool) {
	obj, err := scheme.Scheme.New(gvk)
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj) != nil {
		return nil, false
	}
	d := defaulter{}
	for _, row := range defaults() {
		d[row.of] = append(d[row.of], row)
	}
	d.walk(reflect.ValueOf(obj).Elem())
	return obj, true
}

// row holds defaults of a type of k8s.io/api.
type row struct {
	of     string // the name of the type
	when   string // "field", "!field" or "field=value": another field is set, unset, or has a value
	fields string // in JSON
}

// defaults returns the defaults of fields that an update may change, in kinds with a generation,
// measured on Kubernetes 1.36. The rows of one type apply in this order.
func defaults() []row {
	return []row{
		{"Pod", "", `{"spec":{"enableServiceLinks":true}}`},
		{"PodSpec", "",
			`{"dnsPolicy":"ClusterFirst","restartPolicy":"Always","securityContext":{},` +
				`"terminationGracePeriodSeconds":30,` +
				`"schedulerName":"default-scheduler"}`},
		{"Container", "", `{"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}`},
		{"EphemeralContainerCommon", "",
			`{"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}`},
		{"ContainerPort", "", `{"protocol":"TCP"}`},
		{"Probe", "", `{"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}`},
		{"HTTPGetAction", "", `{"path":"/","scheme":"HTTP"}`},
		{"GRPCAction", "", `{"service":""}`},
		{"ObjectFieldSelector", "", `{"apiVersion":"v1"}`},
		{"FileKeySelector", "", `{"optional":false}`},
		{"SecretVolumeSource", "", `{"defaultMode":420}`},
		{"ConfigMapVolumeSource", "", `{"defaultMode":420}`},
		{"DownwardAPIVolumeSource", "", `{"defaultMode":420}`},
		{"ProjectedVolumeSource", "", `{"defaultMode":420}`},
		{"ServiceAccountTokenProjection", "", `{"expirationSeconds":3600}`},
		{"HostPathVolumeSource", "", `{"type":""}`},
		{"ISCSIVolumeSource", "", `{"iscsiInterface":"default"}`},
		{"RBDVolumeSource", "", `{"pool":"rbd","user":"admin","keyring":"/etc/ceph/keyring"}`},
		{"ScaleIOVolumeSource", "", `{"storageMode":"ThinProvisioned","fsType":"xfs"}`},
		{"AzureDiskVolumeSource", "", `{"cachingMode":"ReadWrite","fsType":"ext4","readOnly":false,"kind":"Shared"}`},
		{"PersistentVolumeClaim", "",
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","status":{"phase":"Pending"}}`},
		{"PersistentVolumeClaimSpec", "", `{"volumeMode":"Filesystem"}`},
		{"DeploymentSpec", "",
			`{"replicas":1,"revisionHistoryLimit":10,"progressDeadlineSeconds":600,` +
				`"strategy":{"type":"RollingUpdate"}}`},
		{"DeploymentStrategy", "type=RollingUpdate", `{"rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}`},
		{"DaemonSetSpec", "", `{"revisionHistoryLimit":10,"updateStrategy":{"type":"RollingUpdate"}}`},
		{"DaemonSetUpdateStrategy", "type=RollingUpdate", `{"rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}`},
		{"StatefulSetSpec", "", `{"replicas":1,"revisionHistoryLimit":10,"podManagementPolicy":"OrderedReady",` +
			`"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain","whenScaled":"Retain"}}`},
		{"StatefulSetUpdateStrategy", "!type", `{"type":"RollingUpdate","rollingUpdate":{}}`},
		{"RollingUpdateStatefulSetStrategy", "", `{"partition":0}`},
		{"ReplicaSetSpec", "", `{"replicas":1}`},
		{"ReplicationControllerSpec", "", `{"replicas":1}`},
		{"Job", "",
			`{"spec":{"parallelism":1,"backoffLimit":6,"completionMode":"NonIndexed","suspend":false,` +
				`"manualSelector":false,` +
				`"podReplacementPolicy":"TerminatingOrFailed"}}`},
		{"CronJobSpec", "",
			`{"concurrencyPolicy":"Allow","suspend":false,"successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":1}`},
		{"PodFailurePolicyOnPodConditionsPattern", "", `{"status":"True"}`},
		{"NetworkPolicyPort", "", `{"protocol":"TCP"}`},
		{"NetworkPolicySpec", "egress", `{"policyTypes":["Ingress","Egress"]}`},
		{"NetworkPolicySpec", "!egress", `{"policyTypes":["Ingress"]}`},
		{"IngressClassParametersReference", "", `{"scope":"Cluster"}`},
		{"EndpointPort", "", `{"name":"","protocol":"TCP"}`},
		{"CSIDriverSpec", "",
			`{"attachRequired":true,"podInfoOnMount":false,"storageCapacity":false,` +
				`"fsGroupPolicy":"ReadWriteOnceWithFSType",` +
				`"volumeLifecycleModes":["Persistent"],"requiresRepublish":false,"seLinuxMount":false}`},
		{"FlowSchemaSpec", "", `{"matchingPrecedence":1000}`},
		{"ExemptPriorityLevelConfiguration", "", `{"nominalConcurrencyShares":0,"lendablePercent":0}`},
		{"LimitedPriorityLevelConfiguration", "", `{"nominalConcurrencyShares":30,"lendablePercent":0}`},
		{"QueuingConfiguration", "", `{"queues":64,"handSize":8,"queueLengthLimit":50}`},
		{"ValidatingWebhook", "",
			`{"failurePolicy":"Fail","matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},` +
				`"timeoutSeconds":10}`},
		{"MutatingWebhook", "",
			`{"failurePolicy":"Fail","matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},` +
				`"timeoutSeconds":10,` +
				`"reinvocationPolicy":"Never"}`},
		{"Rule", "", `{"scope":"*"}`},
		{"ServiceReference", "", `{"port":443}`},
		{"ValidatingAdmissionPolicySpec", "", `{"failurePolicy":"Fail"}`},
		{"MutatingAdmissionPolicySpec", "", `{"failurePolicy":"Fail"}`},
		{"MatchResources", "", `{"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{}}`},
	}
}

// defaulter holds the rows by type.
type defaulter map[string][]row

// walk sets the defaults in value and everything below.
func (d defaulter) walk(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			d.walk(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			d.walk(value.Index(i))
		}
	case reflect.Struct:
		for _, r := range d[value.Type().Name()] {
			if r.holds(value) {
				var fields map[string]json.RawMessage
				_ = json.Unmarshal([]byte(r.fields), &fields) // a test parses all rows
				fill(value, fields)
			}
		}
		special(value.Addr().Interface())
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				d.walk(value.Field(i))
			}
		}
	}
}

func (r row) holds(value reflect.Value) bool {
	name, want, is := strings.Cut(r.when, "=")
	name, not := strings.CutPrefix(name, "!")
	field := fieldOf(value, name)
	switch {
	case name == "":
		return true
	case is:
		return field.String() == want
	default:
		return field.IsValid() && field.IsZero() == not
	}
}

// fill sets the unset fields of a struct.
func fill(value reflect.Value, fields map[string]json.RawMessage) {
	for name, text := range fields {
		field := fieldOf(value, name)
		if !field.IsValid() {
			continue // of another type with this name
		}
		if unset(field) {
			_ = json.Unmarshal(text, field.Addr().Interface())
			continue
		}
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		var below map[string]json.RawMessage
		if field.Kind() == reflect.Struct && json.Unmarshal(text, &below) == nil {
			fill(field, below)
		}
	}
}

func unset(field reflect.Value) bool {
	return field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0
}

// fieldOf returns the field with a JSON name in a struct or its embedded structs.
func fieldOf(value reflect.Value, name string) reflect.Value {
	for i := range value.NumField() {
		tag, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if tag == name {
			return value.Field(i)
		}
		if tag == "" && value.Field(i).Kind() == reflect.Struct {
			if field := fieldOf(value.Field(i), name); field.IsValid() {
				return field
			}
		}
	}
	return reflect.Value{}
}

// special sets defaults depending on other fields.
func special(value any) {
	switch of := value.(type) {
	case *corev1.PodSpec:
		if of.ServiceAccountName == "" {
			of.ServiceAccountName = of.DeprecatedServiceAccount
		}
		of.DeprecatedServiceAccount = of.ServiceAccountName
	case *corev1.Container:
		pullPolicy(of.Image, &of.ImagePullPolicy)
	case *corev1.EphemeralContainerCommon:
		pullPolicy(of.Image, &of.ImagePullPolicy)
	case *corev1.ImageVolumeSource:
		pullPolicy(of.Reference, &of.PullPolicy)
	}
}

// pullPolicy sets the default for an image.
func pullPolicy(image string, policy *corev1.PullPolicy) {
	if *policy != "" {
		return
	}
	name, _, digest := strings.Cut(image[strings.LastIndex(image, "/")+1:], "@")
	_, tag, tagged := strings.Cut(name, ":")
	*policy = corev1.PullIfNotPresent
	if tag == "latest" || !tagged && !digest {
		*policy = corev1.PullAlways
	}
}
