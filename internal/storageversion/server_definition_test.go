package storageversion_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/storageversion"
)

// antique is a definition as Kubernetes 1.10 stored it: without versions, and with fields of all
// versions at the top.
const antique = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",` +
	`"metadata":{"name":"antiques.demo.example.com","selfLink":"/apis/x","uid":"5c0e1c1e-0000-4000-8000-000000000002",` +
	`"generation":1,"creationTimestamp":"2018-01-02T03:04:05Z"},"spec":{"group":"demo.example.com","version":"v1",` +
	`"names":{"plural":"antiques","singular":"antique","kind":"Antique","listKind":"AntiqueList"},"scope":"Namespaced",` +
	`"validation":{"openAPIV3Schema":{"properties":{"spec":{"properties":{"n":{"type":"integer"}}}}}},` +
	`"subresources":{"status":{}},"additionalPrinterColumns":[{"name":"N","type":"integer","JSONPath":".spec.n"}]},` +
	`"status":{"conditions":[{"type":"NamesAccepted","status":"True","lastTransitionTime":null,"reason":"NoConflicts",` +
	`"message":"no conflicts found"},{"type":"Established","status":"True","lastTransitionTime":"2018-01-02T03:04:05Z",` +
	`"reason":"InitialNamesAccepted","message":"the initial names have been accepted"}],"acceptedNames":{` +
	`"plural":"antiques","singular":"antique","kind":"Antique","listKind":"AntiqueList"},"storedVersions":["v1"]}}` + "\n"

// TestServerDefinition checks that a server serves such a definition and stores it in its own form
// at its start, so that the migration can keep it.
func TestServerDefinition(t *testing.T) {
	t.Parallel()
	const key = crdDir + "antiques.demo.example.com"
	c := startCluster(t, "")
	c.close()
	c.put(t, key, antique)
	before := c.save(t)
	out, r := migrate(t, before, storageversion.Options{Release: native.LinkedRelease, RemoveUnserved: true})
	require.Empty(t, r.Problems)
	require.Equal(t, antique, values(t, out)[key])

	c.restart(t)
	require.Eventually(t, func() bool {
		value, _ := c.record(t, key)
		return strings.Contains(value, `"type":"NonStructuralSchema","status":"True"`)
	}, 10*time.Second, 20*time.Millisecond)
	value, revision := c.record(t, key)
	require.Contains(t, value, `"apiVersion":"apiextensions.k8s.io/v1beta1"`)
	require.Contains(t, value, `"subresources":{"status":{}},"versions":[{"name":"v1","served":true,"storage":true}],`+
		`"additionalPrinterColumns":[{"name":"N","type":"integer","JSONPath":".spec.n"}],`+
		`"conversion":{"strategy":"None"},"preserveUnknownFields":true}`)
	require.NoError(t, c.updateCRD(t, "antiques.demo.example.com", func(*apiextensionsv1.CustomResourceDefinition) {}))
	after, same := c.record(t, key)
	require.Equal(t, value, after)
	require.Equal(t, revision, same)
}
