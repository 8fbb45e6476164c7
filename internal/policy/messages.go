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

// staticMessage returns the message of a decision without results of expressions.
func staticMessage(validations []admissionapi.Validation, i int, d validating.PolicyDecision) string {
	if d.Evaluation == validating.EvalError || i >= len(validations) {
		return errQuiet
	}
	if v := validations[i]; v.Message != "" {
		return strings.TrimSpace(v.Message)
	}
	return "failed expression: " + strings.TrimSpace(validations[i].Expression)
}

// quote returns an expression's result without secrets of the snapshot. Parts of secrets are hidden
// too if they are from the object, its Namespace or the params.
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

// hidden adds the secrets of the object, its Namespace and the params.
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

// messages returns the messages of a server's refusal.
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
