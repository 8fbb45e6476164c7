package native

import (
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/storage"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"

	"github.com/etcdshift/etcdshift/encoding"
)

// Printer prints objects of a built-in kind with the code of a Kubernetes API server. Concurrent
// calls are allowed.
type Printer struct {
	Columns []metav1.TableColumnDefinition // of higher priority than 0: for wide tables

	of     reflect.Type // of the API server, for all versions
	times  *places      // nil for none
	direct sync.Map     // *Direct by schema.GroupVersionKind
}

var generator = sync.OnceValue(func() *printers.HumanReadableGenerator {
	return printers.NewTableGenerator().With(internalversion.AddHandlers)
})

// NewPrinter returns the Printer of a kind, nil if a server has no columns for it.
func NewPrinter(kind schema.GroupKind) *Printer {
	obj, err := legacyscheme.Scheme.New(kind.WithVersion(runtime.APIVersionInternal))
	// a server does not use this printer (pkg/registry/storage/csistoragecapacity/storage)
	if err != nil || kind.Kind == "CSIStorageCapacity" {
		return nil
	}
	table, err := generate(obj)
	if err != nil {
		return nil
	}
	of := reflect.TypeOf(obj)
	times := placesOf(of.Elem(), isTime, map[reflect.Type]*places{})
	return &Printer{Columns: table.ColumnDefinitions, of: of, times: times}
}

// generate prints an object. Some printers need fields that a malformed object lacks. Only lists
// mark a default StorageClass: the object is printed as a list of one.
func generate(obj runtime.Object) (table *metav1.Table, err error) {
	if class, is := obj.(*storage.StorageClass); is {
		obj = &storage.StorageClassList{Items: []storage.StorageClass{*class}}
	}
	defer func() {
		if recover() != nil {
			err = errUnfit
		}
	}()
	return generator().GenerateTable(obj, printers.GenerateOptions{Wide: true})
}

// Row returns the cells of an object in JSON content, with ages relative to now. It returns
// ErrUnknownKind for a version that no server of the linked release decodes.
func (p *Printer) Row(content map[string]any, now time.Time) ([]any, error) {
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	obj, err := legacyscheme.Scheme.New(gvk)
	if err != nil {
		return nil, unknown(gvk)
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj) != nil { // may quote a value
		return nil, errUnfit
	}
	return p.row(obj, now)
}

// StoredRow returns the cells of Row from stored protobuf, in a tenth of the time. It returns false
// if only Row can tell.
func (p *Printer) StoredRow(v encoding.Value, now time.Time) ([]any, bool) {
	if v.Format != encoding.FormatProtobuf {
		return nil, false
	}
	obj, err := legacyscheme.Scheme.New(v.GVK)
	if err != nil {
		return nil, false
	}
	direct, known := p.direct.Load(v.GVK)
	if !known {
		direct, _ = p.direct.LoadOrStore(v.GVK, NewDirect(obj, printed(v.GVK.Kind)))
	}
	if !direct.(*Direct).Decode(v, obj) {
		return nil, false
	}
	row, err := p.row(obj, now)
	return row, err == nil
}

// printed lists the fields of large structs read by the printer of a kind.
func printed(kind string) map[reflect.Type][]string {
	meta := []string{"Name", "CreationTimestamp", "DeletionTimestamp"}
	if kind != "Pod" { // Pods are many
		meta = append(meta, "Labels", "Annotations", "OwnerReferences")
	}
	return map[reflect.Type][]string{
		reflect.TypeFor[metav1.ObjectMeta](): meta,
		reflect.TypeFor[corev1.PodSpec](): {"InitContainers", "Containers", "NodeSelector", "NodeName",
			"ReadinessGates"},
		// The default of ImagePullPolicy takes long.
		reflect.TypeFor[corev1.Container](): {"Name", "Image", "RestartPolicy", "ImagePullPolicy"},
		reflect.TypeFor[corev1.PodStatus](): {"Phase", "Conditions", "Reason", "NominatedNodeName", "PodIP", "PodIPs",
			"InitContainerStatuses", "ContainerStatuses"},
		reflect.TypeFor[corev1.PodCondition](): {"Type", "Status", "Reason"},
		reflect.TypeFor[corev1.ContainerStatus](): {"Name", "State", "LastTerminationState", "Ready", "RestartCount",
			"Started"},
	}
}

// row prints an object of a Go type of k8s.io/api, and changes it.
func (p *Printer) row(obj runtime.Object, now time.Time) ([]any, error) {
	of, err := internal(obj)
	if err != nil || reflect.TypeOf(of) != p.of {
		return nil, errUnfit
	}
	// The printers read the clock. Times become whole seconds and move to the present, so that ages
	// are exact if a row takes less than a second.
	const soon = 900 * time.Millisecond
	change := func(to func(t time.Time) time.Time) {
		p.times.each(reflect.ValueOf(of).Elem(), func(v reflect.Value) {
			if t := v.Addr().Interface().(*time.Time); !t.IsZero() {
				*t = to(*t)
			}
		})
	}
	change(func(t time.Time) time.Time {
		if now.IsZero() {
			return now
		}
		return t.Add(time.Second - 1).Truncate(time.Second)
	})
	for from := now.Truncate(time.Second); ; {
		at := time.Now().Round(0)
		change(func(t time.Time) time.Time { return t.Add(at.Sub(from)) })
		table, err := generate(of)
		if err != nil || len(table.Rows) != 1 {
			return nil, errUnfit
		}
		if passed := time.Now().Round(0).Sub(at); passed >= 0 && passed < soon {
			cells := table.Rows[0].Cells
			return cells[:min(len(cells), len(p.Columns))], nil // an IPAddress has one too many
		}
		from = at
	}
}
