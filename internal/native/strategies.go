package native

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/rest"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/apiserverinternal"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/discovery"
	discoveryvalidation "k8s.io/kubernetes/pkg/apis/discovery/validation"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/lifecycle"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/node"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/apis/rbac"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/apis/storage"
	migrationapi "k8s.io/kubernetes/pkg/apis/storagemigration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/resolver"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apiserverinternal/storageversion"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	csr "k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle"
	"k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/coordination/leasecandidate"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	corenode "k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/lifecycle/eviction"
	"k8s.io/kubernetes/pkg/registry/lifecycle/evictionrequest"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourcepoolstatusrequest"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/compositepodgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/podgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/scheduling/workload"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
	"k8s.io/kubernetes/pkg/registry/storagemigration/storagemigration"
)

// strategy holds the rules of an API server for writes of a kind.
type strategy struct {
	object rest.RESTCreateUpdateStrategy
	status rest.RESTUpdateStrategy // nil for a kind without the subresource
}

// strategies returns the strategies of all stored kinds, by the Go type of the API server.
var strategies = sync.OnceValue(func() map[reflect.Type]strategy {
	all := map[reflect.Type]strategy{}
	add := func(of runtime.Object, object rest.RESTCreateUpdateStrategy, status rest.RESTUpdateStrategy) {
		all[reflect.TypeOf(of)] = strategy{object, status}
	}
	addCore(add)
	addAdmission(add)
	addScheduling(add)

	add(&apps.ControllerRevision{}, controllerrevision.Strategy, nil)
	add(&apps.DaemonSet{}, daemonset.Strategy, daemonset.StatusStrategy)
	add(&apps.Deployment{}, deployment.Strategy, deployment.StatusStrategy)
	add(&apps.ReplicaSet{}, replicaset.Strategy, replicaset.StatusStrategy)
	add(&apps.StatefulSet{}, statefulset.Strategy, statefulset.StatusStrategy)
	add(&autoscaling.HorizontalPodAutoscaler{}, horizontalpodautoscaler.Strategy,
		horizontalpodautoscaler.StatusStrategy)
	add(&batch.CronJob{}, cronjob.Strategy, cronjob.StatusStrategy)
	add(&batch.Job{}, job.Strategy, job.StatusStrategy)
	add(&discovery.EndpointSlice{}, plain(
		func(obj runtime.Object) field.ErrorList {
			return discoveryvalidation.ValidateEndpointSliceCreate(obj.(*discovery.EndpointSlice))
		},
		func(obj, old runtime.Object) field.ErrorList {
			return discoveryvalidation.ValidateEndpointSliceUpdate(obj.(*discovery.EndpointSlice),
				old.(*discovery.EndpointSlice))
		},
	), nil)
	add(&networking.Ingress{}, ingress.Strategy, ingress.StatusStrategy)
	add(&networking.IngressClass{}, ingressclass.Strategy, nil)
	add(&networking.IPAddress{}, ipaddress.Strategy, nil)
	add(&networking.NetworkPolicy{}, networkpolicy.Strategy, nil)
	add(&networking.ServiceCIDR{}, servicecidr.Strategy, servicecidr.StatusStrategy)
	add(&node.RuntimeClass{}, runtimeclass.Strategy, nil)
	add(&policy.PodDisruptionBudget{}, poddisruptionbudget.Strategy, poddisruptionbudget.StatusStrategy)
	add(&rbac.ClusterRole{}, clusterrole.Strategy, nil)
	add(&rbac.ClusterRoleBinding{}, clusterrolebinding.Strategy, nil)
	add(&rbac.Role{}, role.Strategy, nil)
	add(&rbac.RoleBinding{}, rolebinding.Strategy, nil)
	add(&storage.CSIDriver{}, csidriver.Strategy, nil)
	add(&storage.CSINode{}, csinode.Strategy, csinode.StatusStrategy)
	add(&storage.CSIStorageCapacity{}, csistoragecapacity.Strategy, nil)
	add(&storage.StorageClass{}, storageclass.Strategy, nil)
	add(&storage.VolumeAttachment{}, volumeattachment.Strategy, volumeattachment.StatusStrategy)
	add(&storage.VolumeAttributesClass{}, volumeattributesclass.Strategy, nil)
	add(&migrationapi.StorageVersionMigration{}, storagemigration.Strategy, storagemigration.StatusStrategy)
	return all
})

func addCore(add func(runtime.Object, rest.RESTCreateUpdateStrategy, rest.RESTUpdateStrategy)) {
	add(&core.ConfigMap{}, configmap.Strategy, nil)
	add(&core.Endpoints{}, plain(
		func(obj runtime.Object) field.ErrorList {
			return corevalidation.ValidateEndpointsCreate(obj.(*core.Endpoints))
		},
		func(obj, old runtime.Object) field.ErrorList {
			return corevalidation.ValidateEndpointsUpdate(obj.(*core.Endpoints), old.(*core.Endpoints))
		},
	), nil)
	add(&core.Event{}, event.Strategy, nil)
	add(&core.LimitRange{}, limitrange.Strategy, nil)
	add(&core.Namespace{}, namespace.Strategy, namespace.StatusStrategy)
	add(&core.Node{}, corenode.Strategy, corenode.StatusStrategy)
	add(&core.PersistentVolume{}, persistentvolume.Strategy, persistentvolume.StatusStrategy)
	add(&core.PersistentVolumeClaim{}, persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy)
	add(&core.Pod{}, pod.Strategy, pod.StatusStrategy)
	add(&core.PodTemplate{}, podtemplate.Strategy, nil)
	add(&core.ReplicationController{}, replicationcontroller.Strategy, replicationcontroller.StatusStrategy)
	add(&core.ResourceQuota{}, resourcequota.Strategy, resourcequota.StatusStrategy)
	add(&core.Secret{}, secret.Strategy, nil)
	add(&core.Service{}, service.Strategy, service.StatusStrategy)
	add(&core.ServiceAccount{}, plain(
		func(obj runtime.Object) field.ErrorList {
			return corevalidation.ValidateServiceAccount(obj.(*core.ServiceAccount))
		},
		func(obj, old runtime.Object) field.ErrorList {
			return corevalidation.ValidateServiceAccountUpdate(obj.(*core.ServiceAccount), old.(*core.ServiceAccount))
		},
	), nil)
}

func addAdmission(add func(runtime.Object, rest.RESTCreateUpdateStrategy, rest.RESTUpdateStrategy)) {
	unresolved := resolver.ResourceResolverFunc(
		func(schema.GroupVersionKind) (of schema.GroupVersionResource, err error) { return of, err })
	add(&admissionregistration.MutatingAdmissionPolicy{}, mutatingadmissionpolicy.NewStrategy(nil, unresolved), nil)
	add(&admissionregistration.MutatingAdmissionPolicyBinding{},
		mutatingadmissionpolicybinding.NewStrategy(nil, nil, unresolved), nil)
	add(&admissionregistration.MutatingWebhookConfiguration{}, mutatingwebhookconfiguration.Strategy, nil)
	validating := validatingadmissionpolicy.NewStrategy(nil, unresolved)
	add(&admissionregistration.ValidatingAdmissionPolicy{}, validating,
		validatingadmissionpolicy.NewStatusStrategy(validating))
	add(&admissionregistration.ValidatingAdmissionPolicyBinding{},
		validatingadmissionpolicybinding.NewStrategy(nil, nil, unresolved), nil)
	add(&admissionregistration.ValidatingWebhookConfiguration{}, validatingwebhookconfiguration.Strategy, nil)

	allow := authorizerfactory.NewAlwaysAllowAuthorizer()
	add(&certificates.CertificateSigningRequest{}, csr.Strategy, csr.StatusStrategy)
	add(&certificates.ClusterTrustBundle{}, clustertrustbundle.Strategy, nil)
	request := podcertificaterequest.NewStrategy()
	add(&certificates.PodCertificateRequest{}, request, timeless{request, request,
		func(obj runtime.Object) rest.RESTUpdateStrategy {
			var issued moment
			if at := obj.(*certificates.PodCertificateRequest).Status.NotBefore; at != nil {
				issued.Time = at.Time
			}
			return podcertificaterequest.NewStatusStrategy(request, allow, issued)
		}})
	add(&coordination.Lease{}, lease.Strategy, nil)
	add(&coordination.LeaseCandidate{}, leasecandidate.Strategy, nil)
	add(&flowcontrol.FlowSchema{}, flowschema.Strategy, flowschema.StatusStrategy)
	add(&flowcontrol.PriorityLevelConfiguration{}, prioritylevelconfiguration.Strategy,
		prioritylevelconfiguration.StatusStrategy)
	add(&apiserverinternal.StorageVersion{}, storageversion.Strategy, storageversion.StatusStrategy)
}

func addScheduling(add func(runtime.Object, rest.RESTCreateUpdateStrategy, rest.RESTUpdateStrategy)) {
	evicted := eviction.NewStrategy(moment{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}) // all deadlines have passed
	of := eviction.NewStatusStrategy(evicted)
	add(&lifecycle.Eviction{}, evicted, timeless{of, of, func(runtime.Object) rest.RESTUpdateStrategy { return of }})
	asked := evictionrequest.NewStrategy()
	add(&lifecycle.EvictionRequest{}, asked, evictionrequest.NewStatusStrategy(asked))
	add(&resource.DeviceClass{}, deviceclass.Strategy, nil)
	add(&resource.DeviceTaintRule{}, devicetaintrule.Strategy, devicetaintrule.StatusStrategy)
	claim := resourceclaim.NewStrategy(adminNamespace{}, authorizerfactory.NewAlwaysAllowAuthorizer())
	add(&resource.ResourceClaim{}, claim, resourceclaim.NewStatusStrategy(claim))
	add(&resource.ResourceClaimTemplate{}, resourceclaimtemplate.NewStrategy(adminNamespace{}), nil)
	add(&resource.ResourcePoolStatusRequest{}, resourcepoolstatusrequest.Strategy,
		resourcepoolstatusrequest.StatusStrategy)
	add(&resource.ResourceSlice{}, resourceslice.Strategy, nil)
	composite := compositepodgroup.NewStrategy()
	add(&scheduling.CompositePodGroup{}, composite, compositepodgroup.NewStatusStrategy(composite))
	group := podgroup.NewStrategy()
	add(&scheduling.PodGroup{}, group, podgroup.NewStatusStrategy(group))
	add(&scheduling.PriorityClass{}, priorityclass.Strategy, nil)
	add(&scheduling.Workload{}, workload.Strategy, nil)
}

// validators is the strategy of a kind whose own one would link controllers or admission plugins,
// which only make warnings for clients.
type validators struct {
	rest.RESTCreateUpdateStrategy // of another kind with a namespace
	rest.DeclarativeValidationStrategy

	create func(obj runtime.Object) field.ErrorList
	update func(obj, old runtime.Object) field.ErrorList
}

func plain(create func(obj runtime.Object) field.ErrorList, update func(obj, old runtime.Object) field.ErrorList,
) validators {
	return validators{limitrange.Strategy, limitrange.Strategy, create, update}
}

// PrepareForCreate changes nothing.
func (validators) PrepareForCreate(context.Context, runtime.Object) {}

// PrepareForUpdate changes nothing.
func (validators) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// Validate validates a new object.
func (v validators) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return v.create(obj)
}

// ValidateUpdate validates an update.
func (v validators) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return v.update(obj, old)
}

// timeless is the strategy of a status with rules about the present time, which no snapshot knows.
// The rules that a new time is the present one do not apply.
type timeless struct {
	rest.RESTUpdateStrategy
	rest.DeclarativeValidationStrategy

	at func(obj runtime.Object) rest.RESTUpdateStrategy // with a time at which a server could accept obj
}

// ValidateUpdate validates an update of the status.
func (s timeless) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return slices.DeleteFunc(s.at(obj).ValidateUpdate(ctx, obj, old), func(e *field.Error) bool {
		return strings.HasSuffix(e.Detail, " the present time") || strings.HasSuffix(e.Detail, " the past time")
	})
}

// moment is a clock that stands still.
type moment struct{ time.Time }

// Now returns the moment.
func (m moment) Now() time.Time { return m.Time }

// Since returns the time from t to the moment.
func (m moment) Since(t time.Time) time.Duration { return m.Sub(t) }

// adminNamespace stands for the namespace of any object, with the label that admits devices for
// administrators.
type adminNamespace struct{ clientv1.NamespaceInterface }

// Get returns the namespace.
func (adminNamespace) Get(context.Context, string, metav1.GetOptions) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{resource.DRAAdminNamespaceLabelKey: "true"},
	}}, nil
}
