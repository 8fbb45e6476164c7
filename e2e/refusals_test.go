package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// originManifest has the objects of namespace a in the origin of TestRefusals, and what they need.
const originManifest = `
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}
{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default","namespace":"a"}}
{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"notes.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"notes","kind":"Note"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}
{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}
{"apiVersion":"example.com/v1","kind":"Note","metadata":{"name":"note","namespace":"a"}}
{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"thing","namespace":"a"}}
{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"fast"},"provisioner":"example.com/none"}
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"waiting","namespace":"a"},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"fast","resources":{"requests":{"storage":"1Gi"}}}}
{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pv"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"},"claimRef":{"namespace":"b","name":"theirs","uid":"0c7b2a9e-0000-4000-8000-000000000001"}}}
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"a","annotations":{"pv.kubernetes.io/bind-completed":"yes"}},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"","volumeName":"pv","resources":{"requests":{"storage":"1Gi"}}}}
{"apiVersion":"v1","kind":"Service","metadata":{"name":"ip","namespace":"a"},"spec":{"clusterIP":"10.96.77.7","ports":[{"port":80}]}}
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"stray","namespace":"a"},"spec":{"nodeName":"n1","automountServiceAccountToken":false,"containers":[{"name":"c","image":"example.com/none"}]}}
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one","namespace":"a"}}
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"two","namespace":"a"}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"denied","namespace":"a"}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hooked","namespace":"a","labels":{"hooked":"yes"}}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twin","namespace":"a"}}
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"owner"}}
`

// conflictManifest has the objects of the other cluster that refuse those of the origin: a quota, a
// policy, a policy without a binding, a webhook, an IPAddress, and the definition at another
// version.
const conflictManifest = `
{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"few","namespace":"a"},"spec":{"hard":{"secrets":"1"}}}
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"unbound.example.com"},"spec":{"failurePolicy":"Fail","matchConstraints":{"resourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"operations":["*"]}]},"validations":[{"expression":"false"}]}}
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"names.example.com"},"spec":{"failurePolicy":"Fail","matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]},"matchConditions":[{"name":"in-a","expression":"request.namespace == 'a'"}],"validations":[{"expression":"object.metadata.name != 'denied'","message":"the name is taken"}]}}
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"names.example.com"},"spec":{"policyName":"names.example.com","validationActions":["Deny"]}}
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"hooks.example.com"},"webhooks":[{"name":"hooks.example.com","failurePolicy":"Fail","sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":1,"clientConfig":{"service":{"namespace":"none","name":"none"}},"objectSelector":{"matchLabels":{"hooked":"yes"}},"matchConditions":[{"name":"maps","expression":"request.kind.kind == 'ConfigMap'"}],"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]}]}
{"apiVersion":"networking.k8s.io/v1","kind":"IPAddress","metadata":{"name":"10.96.77.7"},"spec":{"parentRef":{"group":"gateway.networking.k8s.io","resource":"gateways","namespace":"b","name":"g"}}}
{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}
`

// refusals are the conflicts of TestRefusals that a live server refuses, too: what kubectl creates,
// and the answer.
func refusals() map[string][2]string {
	object := func(kind, name, more string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"namespace":"a","name":%q%s}`, kind, name, more)
	}
	return map[string][2]string{
		"error quota-exceeded":     {object("Secret", "two", "}"), "exceeded quota: few"},
		"error policy-denied":      {object("ConfigMap", "denied", "}"), "denied request: the name is taken"},
		"warning unadmitted":       {object("ConfigMap", "hooked", `,"labels":{"hooked":"yes"}}`), "failed calling webhook"},
		"error address-in-use":     {object("Service", "ip", `},"spec":{"clusterIP":"10.96.77.7","ports":[{"port":80}]}`), "provided IP is already allocated"},
		"error missing-definition": {`{"apiVersion":"example.com/v1","kind":"Note","metadata":{"namespace":"a","name":"note"}}`, `no matches for kind "Note"`},
		"error unlisted-version":   {`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"a","name":"thing"}}`, `no matches for kind "Thing" in version "example.com/v1"`},
	}
}

// TestRefusals checks each conflict of an import where a real server refuses to create the object,
// or where servers and controllers break it after --allow.
func TestRefusals(t *testing.T) {
	t.Parallel()
	in, archive := refusing(t)
	r, codes := imports(t, in, archive)
	require.Equal(t, "refused", r.Outcome)
	var flags []string
	for _, code := range []string{
		"duplicate-uid", "missing-definition", "unlisted-version", "need-missing", "volume-held",
		"address-in-use", "node-missing", "owner-outside", "policy-denied", "quota-exceeded"} {
		require.True(t, codes["error "+code], "%s: %v", code, codes)
		flags = append(flags, "--allow", code)
	}
	require.True(t, codes["warning unadmitted"], "%v", codes)
	r, codes = imports(t, in, archive, flags...)
	require.Equal(t, "written", r.Outcome, "%v", codes)

	c := startCluster(t, r.restore(t))
	require.Contains(t, c.ranOn(t, false, "get notes -n a"), `doesn't have a resource type "notes"`)
	require.Contains(t, c.ranOn(t, false, "get things -n a"), "example.com/v1")
	require.Contains(t, c.ranOn(t, false, "logs stray -n a"), `"n1" not found`)
	// With the version, the object is readable again, and the garbage collector can begin.
	c.ranOn(t, true, `patch crd things.example.com --type=json -p=[{"op":"add","path":"/spec/versions/-","value":`+
		`{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}}]`)
	eventually(t, serveTimeout, "things are served", func() error {
		if text, ok := c.kubectl(t).run(t, "get", "things", "-n", "a"); !ok {
			return errors.New(text)
		}
		return nil
	})

	controllers := c.controllers(t)
	defer controllers.stop()
	gone := func(name string) error {
		_, err := c.client(configMaps(), "a").Get(context.Background(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %v", err)
	}
	c.phase(t, "persistentvolumeclaims", "a", "data", "Lost")
	eventually(t, serveTimeout, "owner-outside: it is collected", func() error { return gone("owned") })
	eventually(t, serveTimeout, "need-missing: no volume is provisioned", func() error {
		events, err := c.client(corev1.SchemeGroupVersion.WithResource("events"), "a").List(context.Background(),
			metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if text, _ := e.Object["message"].(string); strings.Contains(text, `"fast" not found`) {
				return nil
			}
		}
		return errors.New("no event names the class")
	})
	c.phase(t, "persistentvolumeclaims", "a", "waiting", "Pending")
	// The garbage collector takes the two objects with one UID for one: the deletion of twin waits
	// for the dependents of twi2, or deletes them.
	c.ranOn(t, true, "delete configmap twin -n a --cascade=foreground --wait=false")
	c.ranOn(t, true, "delete configmap alone -n a --cascade=foreground --wait=false")
	eventually(t, serveTimeout, "an object with its own UID is deleted", func() error { return gone("alone") })
	require.True(t, gone("twin") != nil || gone("child") == nil, "duplicate-uid: nothing breaks")
}

// refusing returns the snapshot of a cluster that refuses each object of an archive.
func refusing(t *testing.T) (in, archive string) {
	c := startCluster(t, filepath.Join(t.TempDir(), "etcd"))
	c.create(t, originManifest)
	owned := func(name, apiVersion, kind, owner string, uid types.UID) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"a","ownerReferences":`+
			`[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"blockOwnerDeletion":true}]}}`, name, apiVersion, kind, owner, uid)
	}
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	role, err := c.client(roles, "").Get(context.Background(), "owner", metav1.GetOptions{})
	require.NoError(t, err)
	c.create(t, owned("owned", "rbac.authorization.k8s.io/v1", "ClusterRole", "owner", role.GetUID()))
	one, err := c.client(configMaps(), "a").Get(context.Background(), "twin", metav1.GetOptions{})
	require.NoError(t, err)
	c.store.waitQuiet(t)
	archive = extracted(t, c.store.save(t), "-n", "a")
	twin := c.store.records(t)["/registry/configmaps/a/twin"].value
	child := owned("child", "v1", "ConfigMap", "twi2", one.GetUID())

	// the same cluster, without the objects, and with others in their way
	c.ranOn(t, true, "delete pod stray -n a --force --grace-period=0")
	for _, claim := range []string{"data", "waiting"} {
		c.ranOn(t, true, "patch pvc "+claim+` -n a --type=merge -p={"metadata":{"finalizers":null}}`)
	}
	c.ranOn(t, true, "delete -n a pvc,svc,secrets,configmaps,notes,things --all")
	c.ranOn(t, true, "delete storageclass/fast clusterrole/owner")
	c.ranOn(t, true, "delete crd notes.example.com things.example.com")
	_, err = c.store.Put(context.Background(), "/registry/configmaps/a/twi2", strings.ReplaceAll(twin, "twin", "twi2"))
	require.NoError(t, err)
	c.create(t, child+"\n"+`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"alone","namespace":"a"}}`+conflictManifest)
	c.create(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"first","namespace":"a"}}`)
	c.ranOn(t, true, `patch quota few -n a --subresource=status --type=merge -p={"status":`+ // as its controller does
		`{"hard":{"secrets":"1"},"used":{"secrets":"1"}}}`)
	for code, one := range refusals() {
		path := filepath.Join(t.TempDir(), "object.json")
		require.NoError(t, os.WriteFile(path, []byte(one[0]), 0o600))
		eventually(t, serveTimeout, code, func() error { // the server learns of policies and webhooks after a while
			args := []string{"create", "-f", path}
			if code != "error address-in-use" { // a dry run takes no IP
				args = append(args, "--dry-run=server")
			}
			text, ok := c.kubectl(t).run(t, args...)
			if ok || !strings.Contains(text, one[1]) {
				return errors.New(text)
			}
			return nil
		})
	}
	c.store.waitQuiet(t)
	in = c.store.save(t)
	c.stop()
	return in, archive
}
