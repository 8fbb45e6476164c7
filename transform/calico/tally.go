package calico

import "github.com/etcdshift/etcdshift/transform"

// tally counts the records of one kind.
type tally struct {
	migrated, unchanged, skipped, conflicts int
}

func (c *tally) add(id *identity) {
	switch id.fate {
	case migrated, replaced:
		c.migrated++
	case unchanged:
		c.unchanged++
	default:
		c.skipped++
	}
	if id.conflict {
		c.conflicts++
	}
}

// merge adds the counts to those of a kind in the list: a snapshot may hold several storage prefixes.
func (c tally) merge(list []transform.KindCount, k kind) []transform.KindCount {
	i := 0
	for i < len(list) && list[i].Kind != k.Kind {
		i++
	}
	if i == len(list) {
		list = append(list, transform.KindCount{Kind: k.Kind, From: apiVersionV1, To: apiVersionV3})
	}
	list[i].Migrated += c.migrated
	list[i].Unchanged += c.unchanged
	list[i].Skipped += c.skipped
	list[i].Conflicts += c.conflicts
	return list
}

func rename(k kind, id *identity) transform.Rename {
	return transform.Rename{Kind: k.Kind, Namespace: id.namespace, From: id.stored, To: id.name}
}

func uidOf(k kind, id *identity) transform.UID {
	return transform.UID{
		Kind: k.Kind, Namespace: id.namespace, Name: id.name,
		Stored: id.uid.String(), Seen: id.seen(), Written: id.written(),
	}
}
