package transform

import (
	"context"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// What a command needs that reads a snapshot as Run does, and writes something else than a changed copy of it.

// CheckPaths refuses, before anything is read, an output that exists (fs.ErrExist), that is the input (ErrOutIsIn), or whose folder
// cannot be written to. Run does so by itself.
func CheckPaths(in, out string) error { return checkPaths(in, out) }

// InfoOf identifies a snapshot. It waits for its digest; a wrong one is an error.
func InfoOf(ctx context.Context, s *snapshot.Snapshot) (FileInfo, error) {
	f := FileInfo{Path: s.Path()}
	err := fileInfo(ctx, s, &f)
	return f, err
}

// Refuse adds an error-level problem that nobody can allow.
func (r *Report) Refuse(key, code, reason string) {
	r.Raise(key, coded(code, finding.Error, "", reason))
}

// GoOn adds an error-level problem after which, where it is allowed, everything is done all the same.
func (r *Report) GoOn(key, code, reason string, allowed bool) {
	f := coded(code, finding.Error, "", reason)
	if allowed {
		f.Outcome = finding.WentOn
	}
	r.Raise(key, f)
}

// Warn adds a warning.
func (r *Report) Warn(key, code, reason string) {
	r.Raise(key, coded(code, finding.Warning, "", reason))
}

// WarnOfFile adds what is odd about an input as a file.
func (r *Report) WarnOfFile(s *snapshot.Snapshot) {
	for i, w := range s.Warnings() {
		code := CodeRawFile
		if i == 0 && s.Compression() != "" {
			code = CodeCompressed
		}
		r.Raise("", code.Because("%s", w))
	}
	if err := s.FreeList(); err != nil {
		r.Raise("", CodeFreeList.Because("%v; an output stores none", err))
	}
}
