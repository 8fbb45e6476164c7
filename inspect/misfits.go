package inspect

import (
	"bytes"
	"context"
)

// Misfits counts the live keys in the folders of a type that fit no layout, so that Objects has none of them. Of a selection, its
// namespace and cluster count: keys that have a segment of that name.
func (r *Reader) Misfits(ctx context.Context, t *Type, in Selection) (n int, err error) {
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return 0, err
	}
	for _, dir := range layouts.Dirs(t.Resource) {
		for rec, err := range r.live(ctx, dir) {
			if err != nil {
				return n, err
			}
			if _, _, err := layouts.Parse(rec.Key); err == nil {
				continue
			}
			within := func(name string) bool {
				return name == "" || bytes.Contains(rec.Key[len(dir)-1:], []byte("/"+name+"/"))
			}
			if within(in.Namespace) && within(in.Cluster) {
				n++
			}
		}
	}
	return n, nil
}
