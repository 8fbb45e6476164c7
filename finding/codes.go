package finding

// The codes that several packages report with one meaning.
var (
	// Undecodable is for a value that is no object, or not the one its key names.
	Undecodable = &Code{Name: "undecodable", Level: Error, Allowed: Skipped,
		Title: "a value cannot be decoded",
		Meaning: "The value is no object, or not the one its key names, or the schemas of its CRD cannot be applied to it. " +
			"Every value under the storage prefix is checked, since one such value makes every list of its kind fail.",
		Remedy: "Look at it with `etcdctl get KEY`; restore or delete it on the live cluster.",
		Allow: "The value stays as it is; references in it are not adjusted. " +
			"`migrate storage-versions` removes no version from its CRD's storedVersions.",
	}
	// Encrypted is for a value that no configured key decrypts.
	Encrypted = &Code{Name: "encrypted", Level: Error, Allowed: Skipped,
		Title: "a value cannot be decrypted",
		Meaning: "The reason names the provider and key that encrypted the value, as in `aescbc:v1:key1`, and why it cannot be decrypted: " +
			"no configuration was given, it has no such provider or key for this resource, the key does not fit, or the value is cut off.",
		Remedy: "Give the EncryptionConfiguration of the API servers with `--encryption-config FILE`, or an older one that still has the key " +
			"(docs/encryption.md). Rewrap values of KMS v1 to v2 on a live cluster first. Where the key is lost, the value is lost: delete it.",
		Allow: "The value stays as it is, under its key. Reasonable for Secrets that the migration does not touch; never for Calico's records. " +
			"`migrate storage-versions` removes no version from the storedVersions of a CRD with such an object.",
	}
)
