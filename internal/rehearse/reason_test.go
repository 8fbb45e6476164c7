package rehearse

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcdshift/etcdshift/finding"
)

// TestReasonsHoldNoValues: what a server says of fields is kept, the values of the fields are not.
func TestReasonsHoldNoValues(t *testing.T) {
	at := field.NewPath("spec", "a")
	for _, c := range []struct {
		err  *field.Error
		want string
	}{
		{field.Invalid(at, "se\"cret: x", "must not be so"), "spec.a: Invalid value: must not be so"},
		{field.Invalid(at, 5, "must not be so"), "spec.a: Invalid value: must not be so"},
		{field.Invalid(at, map[string]any{"a": "secret: x"}, "must not be so"), "spec.a: Invalid value: must not be so"},
		{field.Invalid(at, map[any]any{"a": "secret: x"}, "must not be so"), "spec.a: Invalid value"}, // printed as Go does
		{field.Invalid(nil, field.OmitValueType{}, "must not be so"), "the object itself: Invalid value: must not be so"},
		{field.NotSupported(at, "secret", []string{"a", "b"}), `spec.a: Unsupported value: supported values: "a", "b"`},
		{field.Duplicate(at, map[string]any{"a": "secret"}), "spec.a: Duplicate value"},
		{field.TooLong(at, "secret", 3), "spec.a: Too long: may not be more than 3 bytes"},
		{field.TooMany(at, 5, 3), "spec.a: Too many: must have at most 3 items"},
		{field.Required(at, "name it"), "spec.a: Required value: name it"},
		{field.NotFound(at, "secret"), "spec.a: Not found"},
		{field.Forbidden(at, "not now"), "spec.a: Forbidden: not now"},
		{field.TypeInvalid(at, "secret", "must be of type integer"), "spec.a: Invalid value: must be of type integer"},
	} {
		refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "Widget"}, "a", field.ErrorList{c.err})
		require.Equal(t, c.want, reason(refusal, false))
		require.NotContains(t, reason(refusal, true), "must not")
	}
	for message, want := range map[string]string{
		"failed to convert new object (a/b) to smd typed: errors:\n  .spec.b: expected map, got &{[secret]}\n  .spec.a[name=\"secret\"]: expected string, got &value.valueUnstructured{Value:5}"://
		`failed to convert new object (a/b) to smd typed: errors: .spec.a[name="..."]: expected string; .spec.b: expected map`,
		`.metadata.managedFields: parsing time "secret" as "2006"`:            `.metadata.managedFields: parsing time "..." as "..."`,
		`conversion webhook for a/v1, Kind=B failed: Post "https://x": no`:    `conversion webhook for a/v1, Kind=B failed: Post "https://x": no`,
		"request to convert CR from an invalid group/version: example.com/v0": "request to convert CR from an invalid group/version: example.com/v0",
	} {
		require.Equal(t, want, reason(&apierrors.StatusError{ErrStatus: metav1.Status{Message: message}}, false))
	}
}

// TestFailuresAreBounded: the first 1,000 of each code are kept, in whatever order they come.
func TestFailuresAreBounded(t *testing.T) {
	var f failures
	for _, i := range rand.Perm(5000) {
		f.add(refused{Finding: codeList.Because("x"), Resource: "a", objectName: objectName{Name: fmt.Sprintf("%04d", i)}})
		f.add(refused{Finding: codeApply.Because("x"), Resource: "b", objectName: objectName{Name: fmt.Sprintf("%04d", i%10)}, Version: fmt.Sprintf("%04d", i)})
	}
	all, counts := f.all()
	require.Equal(t, map[*finding.Code]int{codeList: 5000, codeApply: 5000}, counts)
	require.Len(t, all, 2000)
	require.Equal(t, "0000", all[0].Name)
	require.Equal(t, "0999", all[999].Name)
	require.Equal(t, "1", all[1999].Name[3:])
	require.Equal(t, "4991", all[1999].Version)
}
