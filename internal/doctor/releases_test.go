package doctor

// nodeOf returns a Node with a release of its kubelet.
func nodeOf(kubelet string) record {
	return object("minions/n1", "v1", "Node", `},"status":{"nodeInfo":{"kubeletVersion":"`+kubelet+`"}}`)
}

// releaseDefects returns objects that some releases of Kubernetes cannot decode.
func releaseDefects() []defect {
	return []defect{
		{codeVersionDead, only(object("cronjobs/team/a", "batch/v2alpha1", "CronJob", "")), "cronjobs/team/a",
			"1 object of batch/v2alpha1 CronJob: Kubernetes 1.37 does not decode the version; 1.20 is the last",
			only(object("cronjobs/team/a", "batch/v1beta1", "CronJob", ""))},
		{codeVersionDead, only(nodeOf("v1.33.1"), object("resourceclaims/team/a", "resource.k8s.io/v1",
			"ResourceClaim", "")), "resourceclaims/team/a",
			"Kubernetes 1.33 does not decode the version; 1.34 is the first that does",
			only(nodeOf("v1.34.0-rc.1+k3s1"), object("resourceclaims/team/a", "resource.k8s.io/v1", "ResourceClaim",
				""))},
		{codeVersionOld, only(nodeOf("v1.33.1"), object("ipaddresses/10.0.0.9", "networking.k8s.io/v1alpha1",
			"IPAddress", "")), "ipaddresses/10.0.0.9",
			"Kubernetes 1.33 of this cluster decodes the version, 1.37 does not; 1.33 is the last",
			only(nodeOf("v1.33.1"), object("ipaddresses/10.0.0.9", "networking.k8s.io/v1beta1", "IPAddress", ""))},
		{codeUnknownKind, only(object("clustercidrs/a", "networking.k8s.io/v1alpha1", "ClusterCIDR", "")),
			"clustercidrs/a", "", nil},
	}
}
