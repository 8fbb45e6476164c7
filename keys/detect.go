package keys

import "strings"

// DetectPrefix returns the storage prefix that a key gives away: one that can only be a CRD's, an APIService's, or that
// of a namespace every cluster has. ok is false for all other keys; they may still be under a prefix. Every
// kube-apiserver stores APIServices, an apiextensions-apiserver alone may store nothing but CRDs.
//
// A namespace's key is taken for one only where what stands before it can't be a resource of its own, so that the pod
// "default" in a namespace "namespaces" tells nothing.
func DetectPrefix(key []byte) (prefix string, ok bool) {
	dir, name, ok := cutLast(string(key))
	if !ok || name == "" {
		return "", false
	}
	switch {
	case strings.HasSuffix(dir, "/apiextensions.k8s.io/customresourcedefinitions"):
		// <plural>.<group>, and a group has a dot
		prefix = strings.TrimSuffix(dir, "/apiextensions.k8s.io/customresourcedefinitions")
		ok = strings.Count(name, ".") >= 2
	case strings.HasSuffix(dir, "/apiregistration.k8s.io/apiservices"):
		// <version>.<group>; the group of "v1." is the core
		prefix = strings.TrimSuffix(dir, "/apiregistration.k8s.io/apiservices")
		ok = strings.HasPrefix(name, "v") && strings.Contains(name, ".")
	case strings.HasSuffix(dir, "/namespaces"):
		prefix = strings.TrimSuffix(dir, "/namespaces")
		ok = isFirstNamespace(name) && !endsInResource(prefix)
	default:
		return "", false
	}
	if !ok || !isPrefix(prefix) {
		return "", false
	}
	if _, err := (Kubernetes{Prefix: prefix}).Parse(key); err != nil {
		return "", false
	}
	return prefix, true
}

// isFirstNamespace tells whether every kube-apiserver creates a namespace of that name.
func isFirstNamespace(name string) bool {
	switch name {
	case "default", "kube-system", "kube-public", "kube-node-lease":
		return true
	}
	return false
}

// endsInResource tells whether s may be a prefix and the place of a resource: "/registry/pods",
// "/registry/services/specs", "/registry/example.com/widgets".
func endsInResource(s string) bool {
	before, last, ok := cutLast(s)
	if !ok || before == "" {
		return false // one segment: "/registry", "/pods" even
	}
	_, group, _ := cutLast(before)
	return kubernetesTable.byDir[last].dir != "" || kubernetesTable.byDir[group+"/"+last].dir != "" || strings.Contains(group, ".")
}

// isPrefix tells whether s is what Kubernetes.Prefix may be: "", or segments with single slashes between them, the first
// with or without one before it.
func isPrefix(s string) bool {
	if s == "" {
		return true
	}
	for segment := range strings.SplitSeq(strings.TrimPrefix(s, "/"), "/") {
		if segment == "" {
			return false
		}
	}
	return true
}

// cutLast cuts s around its last slash.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}
