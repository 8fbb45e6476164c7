package policy

import (
	"errors"
	"strings"

	admissionapi "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"

	"github.com/etcdshift/etcdshift/internal/redact"
)

// quiet is the message of a decision without text that an expression made.
func quiet(validations []admissionapi.Validation, i int, d validating.PolicyDecision) string {
	if d.Evaluation == validating.EvalError || i >= len(validations) {
		return errQuiet
	}
	if v := validations[i]; v.Message != "" {
		return strings.TrimSpace(v.Message)
	}
	return "failed expression: " + strings.TrimSpace(validations[i].Expression)
}

// quote returns the text of an expression without secrets of the snapshot, and of what the object,
// its Namespace and the params have also no parts.
func (r *request) quote(text string) string {
	if r.secrets == nil {
		hide, err := r.hide()
		if err != nil {
			return errQuiet
		}
		r.secrets = r.hidden(hide.Quoted())
	}
	return r.secrets.Hide(text)
}

// hidden adds the secrets to those of the snapshot.
func (r *request) hidden(secrets *redact.Secrets) *redact.Secrets {
	var quoted []runtime.Object
	if of := r.namespaces.byName[r.object.Parsed.Namespace]; of != nil {
		quoted = append(quoted, of)
	}
	for _, p := range r.policies {
		quoted = append(quoted, p.params...)
	}
	secrets.Add(r.object.Key, r.content)
	for _, one := range quoted {
		if content, err := toContent(one); err == nil {
			secrets.Add(nil, content)
		}
	}
	return secrets
}

const errQuiet = "an expression fails; its message may quote a Secret and is left out"

// messages are those of a server's refusal.
func (r *request) messages(p *Policy, err error) []string {
	if secret(r.Type) || p != nil && p.secret {
		return []string{errQuiet}
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil && len(status.ErrStatus.Details.Causes) > 0 {
		var all []string
		for _, cause := range status.ErrStatus.Details.Causes {
			all = append(all, r.quote(cause.Message))
		}
		return all
	}
	return []string{r.quote(err.Error())}
}
