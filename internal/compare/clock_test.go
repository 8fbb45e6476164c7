package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

func shown(b *Bracket) string {
	text := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return fmt.Sprint(t.Unix())
	}
	return text(b.NotBefore) + " " + text(b.About) + " " + text(b.NotAfter)
}

func TestClock(t *testing.T) {
	var c Clock
	require.Nil(t, c.At(1))
	c.add(10, 100, true)
	c.add(20, 200, true)
	c.add(40, 0, true)     // none
	c.add(40, 1<<40, true) // impossible
	c.add(30, 250, false)  // managedFields: not before
	c.add(50, 400, true)   //
	c.add(60, 9999, false) // later than the next ones
	c.add(70, 500, true)   //
	c.add(71, 90, true)    // a wrong clock, of a restored object
	c.add(72, 900, true)   // another
	c.add(80, 600, true)   //
	c.add(90, 50, false)   // written long ago
	for revision, want := range map[int64]string{
		1: "- 100 101", 10: "100 100 101", 15: "100 150 201", 20: "200 200 201", 25: "200 233 401",
		30: "250 250 401", 40: "250 325 401", 60: "400 450 501", 71: "500 510 601", 72: "500 520 601",
		80: "600 600 601", 95: "600 600 -",
	} {
		require.Equal(t, want, shown(c.At(revision)), revision)
	}
	for at, want := range map[int64][2]int64{50: {1, 9}, 100: {1, 19}, 150: {11, 19}, 220: {21, 29}, 450: {51, 69},
		600: {71, math.MaxInt64}, 601: {81, math.MaxInt64}} {
		require.Equal(t, want, [2]int64{c.First(time.Unix(at, 0)), c.Last(time.Unix(at, 0))}, at)
	}
	c.add(100, 700, true)
	require.Equal(t, "600 650 701", shown(c.At(90)), "what comes later is taken too")
}

// TestClockIsMonotonicAndBounded checks that a later revision never has an earlier time, and that
// memory is bounded.
func TestClockIsMonotonicAndBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var c Clock
	for i := range 3 * mostMarks / 2 {
		at := int64(i)
		if random.IntN(10) == 0 {
			at = random.Int64N(4 * mostMarks)
		}
		c.add(int64(i+1), 1_000_000+at, random.IntN(3) > 0)
	}
	require.LessOrEqual(t, cap(c.marks), 2*mostMarks)
	before := c.At(1)
	for revision := int64(2); revision < 3*mostMarks/2; revision += 97 {
		b := c.At(revision)
		require.False(t, b.NotBefore.Before(before.NotBefore) || b.NotAfter.Before(before.NotAfter) ||
			b.About.Before(before.About), revision)
		require.False(t, b.About.Before(b.NotBefore) || b.About.After(b.NotAfter), revision)
		require.InDelta(t, 1_000_000+revision, b.About.Unix(), 30)
		before = b
	}
}

// TestClockOnManyGoroutines checks that concurrent first questions have the usual answer.
func TestClockOnManyGoroutines(t *testing.T) {
	const marks = 1 << 16
	var clocks [2]Clock
	for i := range clocks {
		random := rand.New(rand.NewPCG(1, 2))
		for range marks {
			clocks[i].add(1+random.Int64N(marks), 1+random.Int64N(marks), random.IntN(3) > 0)
		}
	}
	want := clocks[0].At(marks / 2)
	var asking sync.WaitGroup
	got := make([]*Bracket, 8)
	for i := range got {
		asking.Go(func() { got[i] = clocks[1].At(marks / 2) })
	}
	asking.Wait()
	for _, b := range got {
		require.Equal(t, want, b)
	}
}

func TestTimes(t *testing.T) {
	at := func(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }
	meta := metav1.ObjectMeta{CreationTimestamp: at(100), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "a"},
		{Manager: "b"}}}
	for i, seconds := range []int64{300, 200} {
		time := at(seconds)
		meta.ManagedFields[i].Time = &time
	}
	renewed := metav1.NewMicroTime(at(400).Time)
	for name, c := range map[string]struct {
		object runtime.Object
		want   Times
	}{
		"pod": {&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta},
			Times{Created: 100, Managed: 300}},
		"lease": {&coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}, Times{100, 400, 300}},
		"event": {&corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, FirstTimestamp: at(1),
			LastTimestamp: at(500)}, Times{Written: 500}},
		"series": {&corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, EventTime: renewed,
			Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(600).Time)}}, Times{Written: 600}},
	} {
		native, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), c.object)
		require.NoError(t, err)
		require.Equal(t, c.want, timesOf(native), name)
	}
	require.Equal(t, Times{Created: 100, Managed: 200},
		timesOf(
			[]byte(
				`{"metadata":{"creationTimestamp":"1970-01-01T00:01:40Z",`+
					`"managedFields":[{"time":"1970-01-01T00:03:20Z"},{"time":"x"}]}}`)))
	require.Equal(t, Times{}, timesOf([]byte(`{"metadata":{"creationTimestamp":7}}`)))
	require.Equal(t, Times{}, timesOf([]byte(`12345`)))
}

// FuzzTimes checks that no bytes cause a panic.
func FuzzTimes(f *testing.F) {
	files, err := filepath.Glob("../../encoding/testdata/k8s/*")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found := timesOf(data)
		var c Clock
		c.add(1, found.Created, true)
		c.add(2, found.Written, true)
		c.add(3, found.Managed, false)
		b := c.At(2)
		require.False(t, b != nil && (b.About.Before(b.NotBefore) || !b.NotAfter.IsZero() && b.About.After(b.NotAfter)))
	})
}
