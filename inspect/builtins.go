package inspect

import (
	_ "embed"
	"slices"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"
)

// builtinTypes lists the resources that kube-apiserver 1.16 to 1.37 serves and stores, one a line:
// group (- for the core group), plural, kind, scope (C or N), short names (- for none), categories.
// The source is "kubectl api-resources -o wide".
//
//go:embed builtins.txt
var builtinTypes string

// otherGroups maps types to the built-in types under whose keys they are stored.
func otherGroups() map[gvr.GroupResource]gvr.GroupResource {
	return map[gvr.GroupResource]gvr.GroupResource{
		{Group: "events.k8s.io", Resource: "events"}:           {Resource: "events"},
		{Group: "extensions", Resource: "ingresses"}:           {Group: "networking.k8s.io", Resource: "ingresses"},
		{Group: "extensions", Resource: "deployments"}:         {Group: "apps", Resource: "deployments"},
		{Group: "extensions", Resource: "daemonsets"}:          {Group: "apps", Resource: "daemonsets"},
		{Group: "extensions", Resource: "replicasets"}:         {Group: "apps", Resource: "replicasets"},
		{Group: "extensions", Resource: "networkpolicies"}:     {Group: "networking.k8s.io", Resource: "networkpolicies"},
		{Group: "extensions", Resource: "podsecuritypolicies"}: {Group: "policy", Resource: "podsecuritypolicies"},
	}
}

// Builtins lists the types of kube-apiserver, in the order in which kubectl prefers groups.
func Builtins() (types []*Type) {
	list := func(words string) []string {
		if words == "-" {
			return nil
		}
		return strings.Split(words, ",")
	}
	for line := range strings.Lines(builtinTypes) {
		f := append(strings.Fields(line), "-")
		types = append(types, &Type{
			Resource: gvr.GroupResource{Group: strings.Trim(f[0], "-"), Resource: f[1]}, Kind: f[2], Singular: strings.ToLower(f[2]),
			Namespaced: f[3] == "N", ShortNames: list(f[4]), Categories: slices.Clone(list(f[5])), Builtin: true,
		})
	}
	return types
}
