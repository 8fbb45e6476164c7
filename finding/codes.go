package finding

// The codes that several packages report with one meaning.
var (
	// Undecodable is for a value that is no object, or not the one its key names.
	Undecodable = &Code{Name: "undecodable", Level: Error, Allowed: Skipped, Title: "a value cannot be decoded",
		Meaning: "The value is no object, or not the one that its key names, or the schemas of its CRD cannot be applied to it. Every value under the " +
			"storage prefix is checked, since one such value makes every list of its kind fail.",
		Remedy: RemedyUndecodable,
		Allow:  "The value stays as it is. References in it are not adjusted. `migrate storage-versions` removes no version from its CRD's storedVersions.",
	}
	// Encrypted is for a value that no configured key decrypts.
	Encrypted = &Code{Name: "encrypted", Level: Error, Allowed: Skipped, Title: "a value cannot be decrypted",
		Meaning: "The reason names the provider and key that encrypted the value, as in `aescbc:v1:key1`, and why decryption fails: no configuration was " +
			"given, it lacks the provider or key for this resource, the key does not fit, or the value is cut off.",
		Remedy: "Give the API servers' EncryptionConfiguration, or an older one with the key: `--encryption-config FILE` (docs/encryption.md). Rewrap KMS " +
			"v1 values to v2 on a live cluster first. If the key is lost, so is the value: delete it.",
		Allow: "The value stays as it is. Reasonable for Secrets that the migration does not touch; never for Calico's records. `migrate storage-versions` " +
			"removes no version from the storedVersions of a CRD with such an object.",
	}
	// UnknownKey is for a key that takes no part in a run.
	UnknownKey = &Code{Name: "unknown-key", Level: Warning, Title: "a key that no API server makes",
		Meaning: "The key lies in the folder of a kind of `projectcalico.org`, of CRDs, or below the storage prefix of a kcp shard or cache. No API server " +
			"makes such a key, or serves it. It stays as it is.",
		Remedy: RemedyUnknownKey,
	}
)

// Remedies of codes that commands allow or report differently.
const (
	RemedyUndecodable   = "`etcdctl get KEY` shows it; restore or delete it on the live cluster."
	RemedyEncrypted     = "Give the API servers' EncryptionConfiguration with `--encryption-config FILE`."
	RemedyUnknownKey    = "`etcdctl get KEY` shows it, `etcdctl del KEY` removes it. Lists may fail on it."
	RemedyUpdateRefused = "delete the object and create it as the schema demands; relax the schema first if it has finalizers."
)
