package serve

import (
	"fmt"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// processes maps subresources of running processes to their content.
func processes() map[string]string {
	return map[string]string{
		"log": "logs", "exec": "processes to run a command in", "attach": "processes to attach to",
		"portforward": "ports", "proxy": "servers behind it",
	}
}

// refusal returns the reason why a file cannot answer a request, "" for other requests.
func refusal(method string, info *request.RequestInfo, path string) string {
	if what, is := processes()[info.Subresource]; is {
		return fmt.Sprintf("%s is a snapshot of etcd: it has no %s", path, what)
	}
	if isReview(info) {
		return ""
	}
	if slices.Contains([]string{http.MethodGet, http.MethodHead}, method) {
		return ""
	}
	return fmt.Sprintf("%s is a snapshot of etcd, served read-only: nothing can be changed", path)
}

// readOnly refuses requests other than reads.
func (s *source) readOnly(next http.Handler, c *codec) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !s.enter() {
			http.Error(w, "the server ends", http.StatusServiceUnavailable)
			return
		}
		defer s.reading.Done()
		info, _ := request.RequestInfoFrom(req.Context())
		sentence := refusal(req.Method, info, s.reader.Snapshot().Path())
		if req.URL.Path == "/version" && sentence == "" {
			responsewriters.WriteRawJSON(http.StatusOK, apiVersion(), w)
			return
		}
		u, has := request.UserFrom(req.Context())
		// discovery names no objects, and can-i needs it
		if has && u.GetName() != readerName && info.IsResourceRequest && !isReview(info) {
			sentence = "a snapshot is served to its reader: nobody can be impersonated, but by \"auth can-i\" and " +
				"\"auth whoami\""
		}
		status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed,
			Reason: metav1.StatusReasonMethodNotAllowed, Message: sentence}
		switch {
		case sentence == "" && info.Verb == "list" && asksForObject(req):
			status.Code, status.Reason = http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable
			status.Message = "you requested PartialObjectMetadata, but the requested object is a list: ask for " +
				"PartialObjectMetadataList"
		case sentence == "":
			next.ServeHTTP(w, req)
			return
		}
		responsewriters.ErrorNegotiated(&apierrors.StatusError{ErrStatus: status}, c,
			schema.GroupVersion{Version: "v1"}, w, req)
	})
}

// asksForObject reports whether a client's preferred format is the metadata of a single object.
func asksForObject(req *http.Request) bool {
	first, _, _ := strings.Cut(req.Header.Get("Accept"), ",")
	_, params, err := mime.ParseMediaType(first)
	return err == nil && params["as"] == "PartialObjectMetadata"
}

// KubernetesVersion returns the Kubernetes release of the linked kinds and rules, such as v1.37.2.
func KubernetesVersion() string {
	v, _, _ := strings.Cut(apiVersion().GitVersion, "+")
	return v
}

// apiVersion returns the Kubernetes version of the served types: v1.37.2 for k8s.io/api v0.37.2.
func apiVersion() version.Info {
	v := version.Info{Major: "1", Minor: "0", GitVersion: "v1.0.0+etcdshift"}
	build, _ := debug.ReadBuildInfo()
	if build == nil {
		return v
	}
	for _, module := range build.Deps {
		if number, is := strings.CutPrefix(module.Version, "v0."); is && module.Path == "k8s.io/api" {
			v.Minor, _, _ = strings.Cut(number, ".")
			v.GitVersion = "v1." + number + "+etcdshift"
		}
	}
	return v
}
