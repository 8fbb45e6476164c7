// Package s3 reads and writes objects in S3 buckets: of AWS, and of servers that speak its protocol
// (MinIO, Ceph, Garage). A path is s3://BUCKET/KEY; s3://BUCKET/KEY?versionId=ID reads one version.
// Endpoint, region, credentials and CA come from the environment and the files of the AWS tools.
//
// Invariants, each with a test named after it:
//
//   - Fetch copies one version of an object whole or fails: a broken connection is resumed with the
//     ETag and the version of the first answer; length and offered checksums are compared.
//   - Put never replaces an object: it checks before the upload, and the completing request tells
//     the server to refuse an existing object (If-None-Match). The error wraps fs.ErrExist. An
//     object with the same bytes counts as written: an earlier run or a request whose answer was
//     lost may have written it.
//   - An object is visible only after all parts have arrived. After an error or an interruption the
//     upload is aborted. A killed process leaves parts, for a lifecycle rule to remove.
//   - A request ends if the server stalls or its answer has no end.
//   - Errors contain no credential and no signature.
package s3
