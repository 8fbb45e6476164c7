package kubectl

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// TestMapper checks that discovery is evaluated once, not for each object of a list.
func TestMapper(t *testing.T) {
	c := newClient(nil, rest.NoWarnings{})
	inner := func() any {
		m, err := c.ToRESTMapper()
		require.NoError(t, err)
		return reflect.ValueOf(m).FieldByName("RESTMapper").Interface()
	}
	require.Same(t, inner(), inner())
}
