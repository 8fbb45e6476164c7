package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// container is the user ID of the Pods.
const container = 65532

// kubelet replaces scheduler and kubelets: it runs the single container of each Pod of a namespace
// as a local process, with its arguments, environment, user and volumes. It ignores images and
// limits.
type kubelet struct {
	*kubernetes.Clientset
	namespace, program string
	// kill returns the time after which a Pod is ended by SIGKILL, like a Pod that exceeds its
	// memory limit; 0 for never.
	kill func(pod *corev1.Pod) time.Duration

	mutex   sync.Mutex
	started map[types.UID]bool
	ended   map[string][]int // exit statuses by index
	failed  []error          // of the kubelet itself
	logs    map[string]string
}

// startKubelet runs a kubelet until the test ends.
func startKubelet(t testing.TB, c *cluster, namespace string, kill func(pod *corev1.Pod) time.Duration) *kubelet {
	t.Helper()
	k := &kubelet{namespace: namespace, program: etcdshift(t), kill: kill, started: map[types.UID]bool{}}
	var err error
	k.Clientset, err = kubernetes.NewForConfig(c.config)
	require.NoError(t, err)
	k.reset()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	dir := t.TempDir()
	running.Go(func() {
		for ctx.Err() == nil {
			k.watch(ctx, dir, &running)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return k
}

// reset clears the recorded ends of Pods.
func (k *kubelet) reset() { k.ended, k.logs = map[string][]int{}, map[string]string{} }

// requireExpected requires that all Pods ran, and ended as the Jobs expect.
func (k *kubelet) requireExpected(t testing.TB) {
	t.Helper()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	require.Empty(t, k.failed)
	for index, ended := range k.ended {
		for _, status := range ended {
			require.Contains(t, []int{0, 3, 137}, status, "index %s: %s", index, k.logs[index])
		}
	}
}

// watch runs Pods until the watch ends.
func (k *kubelet) watch(ctx context.Context, dir string, running *sync.WaitGroup) {
	w, err := k.CoreV1().Pods(k.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		time.Sleep(pollInterval)
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, is := event.Object.(*corev1.Pod)
		if !is || pod.Status.Phase != corev1.PodPending || k.started[pod.UID] {
			continue
		}
		k.started[pod.UID] = true
		running.Go(func() {
			if err := k.run(ctx, pod, filepath.Join(dir, string(pod.UID))); err != nil && ctx.Err() == nil {
				k.mutex.Lock()
				defer k.mutex.Unlock()
				k.failed = append(k.failed, fmt.Errorf("%s: %w", pod.Name, err))
			}
		})
	}
}

// run runs a Pod from binding to final status.
func (k *kubelet) run(ctx context.Context, pod *corev1.Pod, dir string) error {
	node := corev1.ObjectReference{Kind: "Node", Name: "node"}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}, Target: node}
	if err := k.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cmd, log, err := k.command(ctx, pod, dir)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = k.tell(ctx, pod, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	if after := k.kill(pod); after > 0 {
		defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
	}
	_ = cmd.Wait()
	status, phase := cmd.ProcessState.ExitCode(), corev1.PodFailed
	if status < 0 {
		status = 128 + int(cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	}
	if status == 0 {
		phase = corev1.PodSucceeded
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "scratch")); len(left) > 0 && status != 137 {
		err = errors.Join(err, fmt.Errorf("exit status %d left %v in its scratch folder", status, left))
	}
	said, _ := os.ReadFile(log)
	k.mutex.Lock()
	index := pod.Labels["batch.kubernetes.io/job-completion-index"]
	k.ended[index], k.logs[index] = append(k.ended[index], status), string(said)
	k.mutex.Unlock()
	return errors.Join(err, k.tell(ctx, pod, phase,
		corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(status)}}))
}

// tell writes the status of a Pod.
func (k *kubelet) tell(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, state corev1.ContainerState) error {
	status := corev1.PodStatus{Phase: phase, StartTime: new(metav1.Now()), ContainerStatuses: []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image, State: state,
		Ready: state.Running != nil,
	}}}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = k.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return err
}

// command returns the process of a Pod; volume paths are replaced by folders below dir.
func (k *kubelet) command(ctx context.Context, pod *corev1.Pod, dir string) (*exec.Cmd, string, error) {
	c := pod.Spec.Containers[0]
	env, err := k.environment(ctx, pod)
	if err != nil {
		return nil, "", err
	}
	var paths []string
	for _, m := range c.VolumeMounts {
		folder := filepath.Join(dir, m.Name)
		if err := k.mount(ctx, pod, m.Name, folder); err != nil {
			return nil, "", err
		}
		paths = append(paths, m.MountPath+"/", folder+"/")
	}
	on := func(text string) string {
		return strings.TrimSuffix(strings.NewReplacer(paths...).Replace(text+"/"), "/")
	}
	cmd := exec.Command(k.program)
	for _, arg := range c.Args {
		cmd.Args = append(cmd.Args, on(expansion.Expand(arg, expansion.MappingFuncFor(env))))
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+on(value))
	}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: container, Gid: container}}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, "", err
	}
	cmd.Stdout, cmd.Stderr = io.Discard, log
	return cmd, log.Name(), nil
}

// mount creates the folder of a volume.
func (k *kubelet) mount(ctx context.Context, pod *corev1.Pod, name, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, v := range pod.Spec.Volumes {
		if v.Name != name || v.ConfigMap == nil {
			continue
		}
		found, err := k.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for key, text := range found.Data {
			if err := os.WriteFile(filepath.Join(folder, key), []byte(text), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	return os.Chmod(folder, 0o777)
}

var fieldOfPod = regexp.MustCompile(`^metadata\.(annotations|labels)\['(.*)'\]$`)

// environment returns the environment of a Pod's container.
func (k *kubelet) environment(ctx context.Context, pod *corev1.Pod) (map[string]string, error) {
	env := map[string]string{}
	for _, from := range pod.Spec.Containers[0].EnvFrom {
		secret, err := k.CoreV1().Secrets(pod.Namespace).Get(ctx, from.SecretRef.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		for name, value := range secret.Data {
			env[name] = string(value)
		}
	}
	for _, e := range pod.Spec.Containers[0].Env {
		switch from := e.ValueFrom; {
		case from == nil:
			env[e.Name] = e.Value
		case from.FieldRef != nil:
			field := fieldOfPod.FindStringSubmatch(from.FieldRef.FieldPath)
			env[e.Name] = map[string]map[string]string{"annotations": pod.Annotations,
				"labels": pod.Labels}[field[1]][field[2]]
		default:
			found, err := k.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, from.ConfigMapKeyRef.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			env[e.Name] = found.Data[from.ConfigMapKeyRef.Key]
		}
	}
	return env, nil
}
