package native

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// laterDefault is a field of a Go type of any version that has a default only in newer releases
// than the field: a feature gate adds the default.
type laterDefault struct {
	of, field string
	since     int // minor release
}

// laterDefaults lists the fields whose default some releases lack without flags.
// Source: pkg/apis/*/v*/defaults.go and pkg/features of Kubernetes 1.29 to 1.37.
func laterDefaults() []laterDefault {
	return []laterDefault{
		{"CSIDriverSpec", "PreventPodSchedulingIfMissing", 37},     // VolumeLimitScaling
		{"ImageVolumeSource", "PullPolicy", 35},                    // ImageVolume
		{"LoadBalancerIngress", "IPMode", 30},                      // LoadBalancerIPMode
		{"RollingUpdateStatefulSetStrategy", "MaxUnavailable", 37}, // MaxUnavailableStatefulSet
	}
}

// laterPlaces finds the fields with later defaults in all Go types of objects, by the first release
// with the default.
var laterPlaces = sync.OnceValue(func() map[int]map[reflect.Type]*places {
	all := map[int]map[reflect.Type]*places{}
	for _, d := range laterDefaults() {
		all[d.since] = map[reflect.Type]*places{}
	}
	for since, known := range all {
		is := func(of reflect.Type, f reflect.StructField) bool {
			return slices.Contains(laterDefaults(), laterDefault{of.Name(), f.Name, since})
		}
		for _, of := range scheme.Scheme.AllKnownTypes() {
			placesOf(of, is, known)
		}
	}
	return all
})

// setDefaults sets the defaults of a minor release in an object of a Go type of k8s.io/api. A
// default of the present time, as of the timeAdded of a taint of a device, becomes the creation of
// the object: the same at each read.
func setDefaults(obj runtime.Object, minor int) {
	v := reflect.ValueOf(obj).Elem()
	var times *places
	if strings.HasPrefix(v.Type().PkgPath(), "k8s.io/api/resource/") { // no other defaults read the clock
		times = placesOf(v.Type(), isTime, map[reflect.Type]*places{})
	}
	set := map[any]bool{} // fields before
	watched := []*places{times}
	for since, known := range laterPlaces() {
		if minor < since {
			watched = append(watched, known[v.Type()])
		}
	}
	for _, p := range watched {
		p.each(v, func(f reflect.Value) { set[f.Addr().Interface()] = p == times || !f.IsZero() })
	}
	legacyscheme.Scheme.Default(obj)
	for _, p := range watched {
		p.each(v, func(f reflect.Value) {
			if !set[f.Addr().Interface()] {
				f.SetZero()
			}
		})
	}
	if created, err := meta.Accessor(obj); err == nil {
		times.each(v, func(f reflect.Value) {
			if t := f.Addr().Interface().(*time.Time); !set[t] {
				*t = created.GetCreationTimestamp().Time
			}
		})
	}
}
