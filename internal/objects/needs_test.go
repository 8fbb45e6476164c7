package objects

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestNeeds checks the objects that fields of objects and of pod templates name.
func TestNeeds(t *testing.T) {
	for object, want := range map[string][]string{
		`{kind: PersistentVolumeClaim, spec: {storageClassName: fast, volumeName: pv-1}}`: {
			"storageclasses.storage.k8s.io//fast", "persistentvolumes//pv-1"},
		`{kind: PersistentVolume, spec: {claimRef: {namespace: b, name: c}, scaleIO: {volumeName: v, secretRef: {name: s, namespace: d}}}}`: {
			"persistentvolumeclaims/b/c optional", "secrets/d/s"},
		`{kind: RoleBinding, roleRef: {kind: ClusterRole, name: edit}, subjects: [{kind: User, name: u}, {kind: ServiceAccount, name: x}]}`: {
			"clusterroles.rbac.authorization.k8s.io//edit", "serviceaccounts/a/x"},
		`{kind: RoleBinding, roleRef: {kind: Role, name: edit}}`: {"roles.rbac.authorization.k8s.io/a/edit"},
		`{kind: Pod, spec: {priorityClassName: system-node-critical, runtimeClassName: kata, nodeName: n1}}`: {
			"nodes//n1", "runtimeclasses.node.k8s.io//kata"},
		`{kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {priorityClassName: low}}}}}}`: {
			"priorityclasses.scheduling.k8s.io//low"},
		`{kind: StatefulSet, spec: {serviceName: s, volumeClaimTemplates: [{spec: {storageClassName: fast}}, 7]}}`: {
			"services/a/s", "storageclasses.storage.k8s.io//fast"},
		`{kind: Deployment, spec: {template: {spec: {serviceAccountName: sa, imagePullSecrets: [{name: pull}],
			containers: [{envFrom: [{configMapRef: {name: cm, optional: true}}, {secretRef: {name: env}}],
			env: [{valueFrom: {secretKeyRef: {name: key, key: k}}}]}],
			volumes: [{secret: {secretName: vol}}, {persistentVolumeClaim: {claimName: pvc}}, {configMap: {name: conf}},
			{projected: {sources: [{secret: {name: p}}]}}]}}}}`: {
			"secrets/a/key", "configmaps/a/cm optional", "secrets/a/env", "secrets/a/pull", "serviceaccounts/a/sa",
			"secrets/a/vol", "persistentvolumeclaims/a/pvc", "configmaps/a/conf", "secrets/a/p"},
		`{kind: Ingress, spec: {ingressClassName: ic, defaultBackend: {service: {name: web}}, tls: [{secretName: tls}]}}`: {
			"services/a/web", "ingressclasses.networking.k8s.io//ic", "secrets/a/tls"},
		`{kind: ValidatingWebhookConfiguration, webhooks: [{clientConfig: {service: {namespace: w, name: hook}}}]}`: {
			"services/w/hook"},
		`{kind: Service, spec: {clusterIPs: [10.0.0.1, None]}}`:                                {"ipaddresses.networking.k8s.io//10.0.0.1 optional"},
		`{kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {kind: Deployment, name: d}}}`: {"deployments.apps/a/d"},
		`{kind: ConfigMap, data: {secretName: x}, metadata: {labels: {secretName: y}}}`:        nil,
		`{kind: Ingress, spec: 7}`: nil,
	} {
		content := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(object), &content), object)
		meta, _ := content["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta["namespace"], content["metadata"] = "a", meta
		var got []string
		for _, n := range Needs(content) {
			text := fmt.Sprintf("%s/%s/%s", n.Resource, n.Namespace, n.Name)
			if n.Optional {
				text += " optional"
			}
			got = append(got, text)
		}
		require.Equal(t, want, got, object)
	}
}

// An object with very many needs takes little time.
func TestManyNeeds(t *testing.T) {
	var all []any
	for i := range 100_000 {
		all = append(all, map[string]any{"secretName": fmt.Sprintf("s%06d", i)})
	}
	begin := time.Now()
	require.Len(t, Needs(map[string]any{"kind": "Pod", "spec": map[string]any{"volumes": all}}), len(all))
	require.Less(t, time.Since(begin), 5*time.Second)
}
