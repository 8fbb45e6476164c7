package get

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
)

// Found is a field with the text, of an object or of a key in no layout.
type Found struct {
	compare.Subject
	compare.Mention // without a path if bytes were searched
}

// A Search looks for a text in objects.
type Search struct {
	Text       *regexp.Regexp
	Everything bool              // all types are searched, and keys in no layout too
	Yield      func(Found) error // called for each field with the text

	Count    int // number of fields found
	Redacted int // objects with redacted values, which were not searched

	*finder
	mark *regexp.Regexp // matches the replacement of a secret
}

// Run searches the chosen objects of r. Verdict reports unreadable values.
func (s *Search) Run(ctx context.Context, r *inspect.Reader, asked []Asked, o Options) (err error) {
	s.mark = redactedMark()
	if s.finder, err = newFinder(ctx, r, asked, o); err != nil {
		return err
	}
	if err := s.learn(); err != nil {
		return err
	}
	return s.search()
}

// Verdict prints the number of objects with redacted values as a message. It returns an error if
// nothing was found, or a value was not read.
func (s *Search) Verdict(text string) error {
	if s.Redacted > 0 && !s.Quiet {
		fmt.Fprintf(s.Errs, "redacted values of %s were not searched; --show-secrets searches them\n",
			phrase.Count(s.Redacted, "object"))
	}
	s.shown = max(s.shown, 1) // suppresses the message about objects in other namespaces
	if err := s.verdict(); err != nil || s.Count > 0 {
		return err
	}
	return fmt.Errorf("no object mentions %q%s", text, s.where(true))
}

// search searches all chosen objects, and with Everything also keys in no layout.
func (s *Search) search() error {
	work := func(o *gotten) {
		if s.choose(o) && !o.Partial {
			s.redact(o, false)
			decodeData(o.Content)
		}
	}
	err := s.each(work, func(_ Asked, o *gotten) error {
		subject := compare.NewSubject(o.Key, o.Parsed)
		switch {
		case o.Err != nil:
			return s.names(subject)
		case o.Partial && s.hide != nil: // any bytes may be secret
			s.Redacted++
			return s.names(subject)
		case o.Partial:
			return s.bytes(subject, o.Entry)
		}
		if o.hidden {
			s.Redacted++
		}
		return s.look(subject, o.Content)
	})
	if err != nil || !s.Everything || s.Namespace != "" || s.Cluster != "" {
		return err
	}
	s.asked = nil // keys in no layout are searched too
	return stream.Each(s.reader.Raw(s.ctx, nil), func(e inspect.Entry) error {
		if _, err := e.ParseKey(); err == nil || len(e.Key) == 0 {
			return nil
		}
		subject := compare.Subject{Key: string(e.Key)}
		if err := errors.Join(s.look(subject, subject.Key), s.reader.Decrypt(s.ctx, &e)); err != nil {
			return err
		}
		if e.Undecryptable != nil {
			s.sayUnread(&gotten{Object: &inspect.Object{Entry: &e}}, e.Undecryptable)
			return nil
		}
		return s.bytes(subject, &e)
	})
}

// names searches the names of an object whose value is unreadable or hidden.
func (s *Search) names(subject compare.Subject) error {
	meta := map[string]any{"name": subject.Name}
	if subject.Namespace != "" {
		meta["namespace"] = subject.Namespace
	}
	return s.look(subject, map[string]any{"metadata": meta})
}

// bytes searches a value in its stored bytes.
func (s *Search) bytes(subject compare.Subject, e *inspect.Entry) error {
	if s.hide != nil && s.hide.Value(e.Key, e.Value) {
		s.Redacted++
		return nil
	}
	return s.look(subject, string(e.Value))
}

func (s *Search) look(subject compare.Subject, content any) error {
	for m := range compare.Mentions(content, s.Text, s.mark) {
		s.Count++
		if err := s.Yield(Found{subject, m}); err != nil {
			return err
		}
	}
	return nil
}

// decodeData decodes the data of a Secret and the binaryData of a ConfigMap. Redacted values are
// not base64 and stay.
func decodeData(content map[string]any) {
	kind, _ := content["kind"].(string)
	field := map[string]string{"Secret": "data", "ConfigMap": "binaryData"}[kind]
	data, _ := content[field].(map[string]any)
	for name, value := range data {
		text, _ := value.(string)
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			data[name] = string(decoded)
		}
	}
}
