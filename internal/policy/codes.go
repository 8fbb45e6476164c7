package policy

import "github.com/etcdshift/etcdshift/finding"

// Codes returns the codes of [Check].
func Codes() []*finding.Code {
	return []*finding.Code{
		CodeDenied, CodeWarned, CodeAudited, CodeIgnored, CodeInvalid, CodeNotEvaluated, CodeCost, CodeUnmatched, CodeUndecodable, CodeEncrypted,
	}
}

// allowable returns the code of an error that --allow of "policy apply" takes.
func allowable(name, title, meaning, remedy, allow string) *finding.Code {
	c := finding.NewCode(finding.Error, name, title, meaning, remedy)
	c.Allow, c.Allowed = allow, finding.Skipped
	return c
}

// Findings of policies.
var (
	CodeDenied = finding.NewCode(finding.Error, "policy-denied", "a policy denies the next write of an object",
		"A ValidatingAdmissionPolicy with the action Deny is not met, or an expression of it fails and its failurePolicy is Fail. An API server with the "+
			"policy refuses every update of the object, also by controllers, with this message.",
		"Change the object (`etcdshift patch`), or the policy, before the policy is enforced.")
	CodeWarned = finding.NewCode(finding.Warning, "policy-warned", "a policy warns of an object",
		"A ValidatingAdmissionPolicy with the action Warn is not met: clients that write the object see this warning.",
		"Change the object before the action becomes Deny.")
	CodeAudited = finding.NewCode(finding.Info, "policy-audited", "a policy reports an object to the audit log",
		"A ValidatingAdmissionPolicy with the action Audit is not met: writes of the object carry this message in the audit log.",
		"Change the object before the action becomes Deny.")
	CodeIgnored = finding.NewCode(finding.Warning, "policy-ignored", "an expression of a policy fails and is ignored",
		"An expression fails with the object, as CEL does for a field that is not there or with too high a cost. The policy's failurePolicy is Ignore: an API "+
			"server goes on as if the policy were not there.",
		"Ask for the field first: `has(object.spec.field)` or `object.?spec.?field`.")
	CodeInvalid = allowable("policy-invalid", "a policy does not compile",
		"An expression of the policy is no CEL, has the wrong type, or uses a function that this release of Kubernetes does not have. An API server refuses "+
			"to create the policy.",
		"The reason has the place. Mend the expression.",
		"The policy is left out.")
	CodeNotEvaluated = allowable("policy-not-evaluated", "a policy cannot be evaluated without a server",
		"The policy asks the authorizer (`authorizer` in an expression), or names an object at a version to which only an API server or a conversion webhook "+
			"can convert it, merges an ApplyConfiguration into a CustomResourceDefinition or APIService, its params cannot be read, or "+
			"an expression makes a larger value than this program evaluates. Nothing is known of what it would do.",
		"Name the stored version in the policy's rules, leave the policy out, or try it on a running API server.",
		"The policy is left out, or the object stays as it is.")
	CodeCost = allowable("policy-cost", "the policies cost too much to check all objects",
		"An API server bounds the cost of a policy for one object. Here all policies for all objects have a budget too, which grows with the number of "+
			"objects: policies that take seconds for each object would take days. What comes after the budget is used up is not checked.",
		"Name policies with `--policy`, one after the other, or make their expressions cheaper: loops in loops cost most.",
		"The objects that were not checked stay as they are.")
	CodeUnmatched = finding.NewCode(finding.Warning, "policy-unmatched", "a policy matched no object",
		"The policy has no binding, or its rules, selectors and match conditions match no stored object. Stored objects meet a policy as at an update that "+
			"changes nothing: rules that name CREATE alone match none.",
		"Compare apiGroups, resources, namespaceSelector and matchConditions with the objects; add UPDATE to the operations.")
	CodeFailed = allowable("policy-failed", "an expression of a policy fails",
		"An expression of a MutatingAdmissionPolicy, or the patch that it makes, fails with the object, and the policy's failurePolicy is Fail: an API server "+
			"refuses every update of the object.",
		"The reason has the expression. Ask for fields first: `has(object.spec.field)`.",
		"The object stays as it is.")
	CodeNotIdempotent = allowable("not-idempotent", "a policy changes an object again each time",
		"Applied to the object that they leave, the policies change it again, as one that appends to a list. On an API server each update would do so.",
		"Add a matchCondition that is false once the change is there.",
		"The object stays as it is.")
	CodeUndecodable = finding.NewCode(finding.Error, "undecodable", finding.Undecodable.Title,
		"A policy names objects of this kind, and the value is no object, or not the one that its key names.", finding.RemedyUndecodable)
	CodeEncrypted = finding.NewCode(finding.Error, "encrypted", finding.Encrypted.Title,
		"A policy names objects of this kind, and no configured key decrypts the value.", finding.RemedyEncrypted)
)
